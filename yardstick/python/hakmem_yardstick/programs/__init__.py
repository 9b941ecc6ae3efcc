"""Real programs from Debian packages, under a load made here."""

from hakmem_yardstick.programs.runner import Programs, packages_missing

__all__ = ["Programs", "packages_missing"]
