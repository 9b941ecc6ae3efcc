"""The Python part of the command `hakmem`: everything but `hakmem run`, which is the shell's."""

__version__ = "0.1.0"
