from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every", type=Path, help="the built tests/limits/every.c")
