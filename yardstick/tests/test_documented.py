"""Every row of a group stands on the group's page."""

import re
from pathlib import Path

import pytest

from hakmem_yardstick.programs import Programs
from yardstick.tests.rows import rows_of

PAGES = Path(__file__).parents[1] / "docs"
GROUPS = ("seed", "micro", "threads", "stress", "memory", "tail", "programs")


@pytest.mark.parametrize("group", GROUPS)
def test_every_row_stands_on_its_groups_page(group: str, suite: Path) -> None:
    if group == "programs":
        names = [row.name for row in Programs().rows()]
    else:
        names = [row["row"] for row in rows_of(suite) if row["group"] == group]
    if not names:
        pytest.skip("the group has no rows")
    page = (PAGES / f"{group}.md").read_text()
    assert [name for name in names if f"`{name}`" not in page] == []


def test_a_page_that_tells_tiers_tells_them_right(suite: Path) -> None:
    page = (PAGES / "memory.md").read_text()
    told = dict(re.findall(r"^\| `([\w-]+)` \| (quick|standard|full) \|", page, re.MULTILINE))
    assert len(told) > 15
    assert told == {row["row"]: row["tier"] for row in rows_of(suite) if row["row"] in told}
