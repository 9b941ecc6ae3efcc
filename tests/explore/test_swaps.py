"""What `make test-swaps` refers to exists in the code: it runs seldom, and a renaming breaks it."""

import pytest

pytest.importorskip("tree_sitter_c")

from tests.explore.swaps import reasons, swaps


def test_each_reason_is_about_a_swap_of_the_code() -> None:
    names = {swap.name for swap in swaps()}
    assert len(names) > 15
    assert reasons().keys() <= names
