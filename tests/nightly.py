"""Points of a product of cases that `make test` leaves to `make test-nightly`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

NIGHTLY = os.environ.get("HAKMEM_TESTS_NIGHTLY") == "1"


def points(all_: Iterable[Any], always: Callable[..., bool]) -> list[Any]:
    """For parametrize: those for which `always` is false are run at night. A tuple is one case with
    several values, which `always` is given one by one."""
    found = []
    for one in all_:
        values = one if isinstance(one, tuple) else (one,)
        found.append(pytest.param(*values, marks=() if always(*values) else pytest.mark.nightly))
    return found
