"""Tables of a shop, from which the Python packages for data read."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

from tests.programs.inputs import WORDS, sentence

FIRST_DAY = datetime.date(2020, 1, 1)
CUSTOMERS = 20_000


def shop(folder: Path, rows: int) -> None:
    """`customers.csv`, and `orders.csv` of so many rows, ordered by day."""
    rng = random.Random(71)
    with (folder / "customers.csv").open("w") as out:
        out.write("customer,name,region,discount\n")
        for customer in range(CUSTOMERS):
            discount = f"{rng.randint(0, 40) / 4}" if rng.random() < 0.7 else ""
            out.write(f"{customer},{sentence(rng, 4)},region {customer % 37},{discount}\n")
    with (folder / "orders.csv").open("w") as out:
        out.write("id,day,customer,kind,pieces,cents,note\n")
        for row in range(rows):
            day = FIRST_DAY + datetime.timedelta(days=row * 1500 // rows)
            note = sentence(rng, 7) if rng.random() < 0.9 else ""
            # Every twentieth or so is of a customer that the other table has not.
            customer = rng.randrange(CUSTOMERS * 21 // 20)
            out.write(
                f"{row},{day},{customer},{rng.choice(WORDS)},{rng.randint(1, 12)},"
                f"{rng.randint(1, 99_999)},{note}\n"
            )
