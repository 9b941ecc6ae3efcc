"""Which programs are tested."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forms", type=Path, help="the folder with the built misuse_* programs")
