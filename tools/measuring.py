"""The commands that are typer's, as argparse would have them: pages.py and completions.py read one
kind of parser."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

import typer.main

from hakmem.cli import MEASURING


def parsers() -> dict[str, argparse.ArgumentParser]:
    return {name: _parser(name, module) for name, (module, _) in MEASURING.items()}


def _parser(name: str, module: str) -> argparse.ArgumentParser:
    command = typer.main.get_command(importlib.import_module(f"hakmem.bench.{module}").app)
    pieces = command.collect_usage_pieces(command.context_class(command))
    parser = argparse.ArgumentParser(
        prog=f"hakmem {name}",
        usage=f"hakmem {name} {' '.join(pieces)}",
        description=_unmarked(command.help),
        epilog=_unmarked(getattr(command, "epilog", None)),
        add_help=False,
    )
    for parameter in command.params:
        if getattr(parameter, "help", None):  # else the usage and the description say it
            _add(parser, parameter)
    parser.add_argument("-h", "--help", action="help", help="show this help message and exit")
    return parser


def _unmarked(text: str | None) -> str:
    """Without click's mark that lines are not to be filled."""
    return (text or "").replace("\b\n", "") + "\n"


def _add(parser: argparse.ArgumentParser, parameter: Any) -> None:
    if parameter.param_type_name == "argument":
        nargs = None if parameter.nargs == 1 else "*"
        parser.add_argument(
            parameter.name, metavar=parameter.metavar, nargs=nargs, help=parameter.help
        )
    elif parameter.is_flag:
        parser.add_argument(*parameter.opts, action="store_true", help=parameter.help)
    else:
        parser.add_argument(
            *parameter.opts,
            metavar=parameter.metavar,
            action="append" if parameter.multiple else "store",
            help=parameter.help,
        )
