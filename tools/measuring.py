"""The commands that are typer's, as argparse would have them: pages.py and completions.py read one
kind of parser."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from typing import Any

import typer.main

from hakmem.cli import MEASURING


def parsers() -> dict[str, argparse.ArgumentParser]:
    return {
        name: _parser(name, module)
        for name, (module, _) in MEASURING.items()
        if importlib.util.find_spec(f"hakmem.bench.{module}")
    }


def _parser(name: str, module: str) -> argparse.ArgumentParser:
    command = typer.main.get_command(importlib.import_module(f"hakmem.bench.{module}").app)
    parser = argparse.ArgumentParser(
        prog=f"hakmem {name}",
        usage=_usage(name, command),
        description=_unmarked(command.help),
        epilog=_unmarked(getattr(command, "epilog", None)),
        add_help=False,
    )
    for parameter in command.params:
        _add(parser, parameter)
    parser.add_argument("-h", "--help", action="help", help="show this help message and exit")
    return parser


def _unmarked(text: str | None) -> str:
    """Without click's mark that lines are not to be filled."""
    return (text or "").replace("\b\n", "") + "\n"


def _usage(name: str, command: Any) -> str:
    """Arguments as the command's own metavars have them."""
    words = [f"hakmem {name} [OPTION]..."]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            word = str(parameter.metavar)
            word = word if parameter.required else f"[{word}]"
            words.append(word + "..." * (parameter.nargs != 1))
    return " ".join(words)


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
