"""What the driver is to do, and in which environment."""

from dataclasses import dataclass

OPERATIONS = 100_000


@dataclass(frozen=True)
class Work:
    """Random mixed over a number of slots, of sizes drawn between two bounds in bytes."""

    slots: int
    smallest: int
    largest: int

    def arguments(self) -> list[str]:
        return [str(self.slots), str(self.smallest), str(self.largest)]

    def __str__(self) -> str:
        sizes = str(self.smallest)
        if self.largest != self.smallest:
            sizes += f"-{self.largest}"
        return f"{self.slots} slots of {sizes} B"
