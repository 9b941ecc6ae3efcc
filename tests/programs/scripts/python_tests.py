"""Runs modules of Python's own test suite and prints the outcome of each test, in their order.

Usage: python_tests.py MODULE...  Nothing about times or addresses is printed, so that two runs
that agree print the same. Exit status 1 when a test failed.
"""

from __future__ import annotations

import sys
import unittest
import warnings

from test import support  # type: ignore[import-not-found, unused-ignore]


class Outcomes(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def note(self, test: unittest.TestCase, outcome: str) -> None:
        self.lines.append(f"{test.id()} {outcome}")

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.note(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:
        self.note(test, "failed as expected")


def main() -> None:
    warnings.simplefilter("ignore")
    support.verbose = 0
    outcomes = Outcomes()
    for name in sys.argv[1:]:
        unittest.defaultTestLoader.loadTestsFromName(f"test.{name}").run(outcomes)
    print("\n".join(sorted(outcomes.lines)))
    print(len(outcomes.lines), "tests")
    for test, trace in outcomes.failures + outcomes.errors:
        print(f"{test.id()} failed\n{trace}", file=sys.stderr)
    sys.exit(0 if outcomes.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
