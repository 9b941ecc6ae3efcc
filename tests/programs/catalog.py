"""All programs under test: the lists CASES of the modules cases*.py beside this one."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from tests.programs.harness import Case


def catalog() -> dict[str, Case]:
    """Name -> case, module after module in alphabetical order."""
    found: dict[str, Case] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)])):
        if module.startswith("cases"):
            for case in importlib.import_module(f"tests.programs.{module}").CASES:
                if case.name in found:
                    raise ValueError(f"{module}.py: a second case is named {case.name}")
                found[case.name] = case
    return found
