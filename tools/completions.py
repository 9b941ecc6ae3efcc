"""The completions of the command for bash and zsh; tools/pages.py writes them.

@WORD@ in the scripts below stands for what is made from the command's parser and the table.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping

from hakmem.bench_command import GROUPS
from hakmem.compare_command import allocators
from hakmem.profile_text import KINDS
from hakmem.table import table

BASH = r"""# Made by tools/pages.py: change tools/completions.py.

# What the program completes by itself; $1 tells which word it is.
_hakmem_program() {
    if declare -F _command_offset >/dev/null; then # of the package bash-completion
        _command_offset "$1"
    elif (($1 == COMP_CWORD)); then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -c -d -- "${COMP_WORDS[$1]}")
    else
        compopt -o default
    fi
}

_hakmem() {
    local word=${COMP_WORDS[COMP_CWORD]#=} flag=${COMP_WORDS[COMP_CWORD - 1]} at=2 words=
    [[ $flag != = ]] || flag=${COMP_WORDS[COMP_CWORD - 2]}
    COMPREPLY=()
    # Over the flags and their values, up to a program. Bash makes three words of NAME=VALUE.
    while ((at < COMP_CWORD)); do
        case "${COMP_WORDS[1]} ${COMP_WORDS[at]}" in
        "run --" | "doctor --" | "compare --")
            _hakmem_program $((at + 1))
            return
            ;;
        @VALUED@)
            [[ ${COMP_WORDS[at + 1]} == = ]] || ((at += 1))
            ;;
        "run "[!-]*)
            _hakmem_program "$at"
            return
            ;;
        esac
        ((at += 1))
        while [[ ${COMP_WORDS[at]-} == = ]]; do ((at += 2)); done
    done
    if ((COMP_CWORD == 1)); then
        words="@COMMANDS@"
    elif ((at > COMP_CWORD)); then
        case "${COMP_WORDS[1]} $flag" in
        "run "*)
            words="@SETTINGS@"
            compopt -o nospace
            ;;
        "bench --only") words="@GROUPS@" ;;
        "profile --by") words="inuse alloc peak" ;;
        "bench --out" | "profile -o" | "profile --"[!st]*) compopt -o default ;;
        esac
    else
        case "${COMP_WORDS[1]} $word" in
@FLAGS@
        "run "*)
            _hakmem_program "$at"
            return
            ;;
        "doctor "*) words="-- $(cd /proc && echo [0-9]*)" ;;
        "options "*) words="@NAMES@" ;;
        "bench "* | "profile "*) compopt -o default ;;
        "compare "*) words="-- @ALLOCATORS@" ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _hakmem hakmem
"""

ZSH = r"""#compdef hakmem
# Made by tools/pages.py: change tools/completions.py.

_hakmem_names() {
    local -a names=(
@NAMES@
    )
    _describe -t names name names "$@"
}

_hakmem_processes() {
    local -a processes=(${${(f)"$(ps -eo pid=,comm=)"}## #})
    processes=('--:a program follows' "${processes[@]/ ##/:}")
    _describe -t processes process processes
}

# What the program completes by itself; a -- may stand before it.
_hakmem_program() {
    if [[ $words[1] == -- ]]; then
        shift words
        ((CURRENT -= 1))
    fi
    _normal -p hakmem
}

# Completes the program after a --; before that, what the arguments do.
_hakmem_or_program() {
    local at=${words[(i)--]}
    if ((at < CURRENT)); then
        shift $((at - 1)) words
        ((CURRENT -= at - 1))
        _hakmem_program
    else
        "$@"
    fi
}

_hakmem_run() {
    _arguments -S -A '-*' \
@RUN@
        '(-):program:_command_names -e' \
        '*::argument:_hakmem_program'
}

_hakmem_doctor() {
    _hakmem_or_program _arguments \
@DOCTOR@
        ':process:_hakmem_processes'
}

_hakmem_options() {
    _arguments \
@OPTIONS@
        '*:option:_hakmem_names'
}

_hakmem_profile() {
    _arguments \
@PROFILE@
        ':heap profile or process:_files'
}

_hakmem_bench() {
    _arguments \
@BENCH@
        '*:file or folder:_files'
}

_hakmem_compare() {
    _hakmem_or_program _arguments \
@COMPARE@
        '*:allocator:(-- @ALLOCATORS@)'
}

_hakmem() {
    local curcontext=$curcontext state state_descr line
    local -A opt_args
    local -a subcommands=( # 'commands' is zsh's own
@COMMANDS@
    )
    _arguments -C -A '-*' \
@TOP@
        ':subcommand:->subcommand' \
        '*::argument:->argument' && return
    case $state in
    subcommand) _describe -t commands subcommand subcommands ;;
    argument) (($+functions[_hakmem_$words[1]])) && _hakmem_$words[1] ;;
    esac
}

_hakmem "$@"
"""

ALLOCATORS = " ".join(allocators())

PROGRAM_FOLLOWS = ("run", "doctor", "compare")

# What zsh offers for a flag's value, by the flag's name for it.
VALUES = {
    "NAME=VALUE": "_hakmem_names -S =",
    "GROUP": f"({' '.join(GROUPS)})",
    "DIR": "_files -/",
    "NAME=PATH": "_files",
    "FILE": "_files",
    "OLD": "_files",
    "WHAT": f"({' '.join(KINDS)})",
}


def completions(top: argparse.ArgumentParser) -> dict[str, str]:
    (choices,) = (a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    commands: dict[str, argparse.ArgumentParser] = choices.choices
    helps = {choice.dest: str(choice.help) for choice in choices._choices_actions}
    return {
        "share/bash-completion/completions/hakmem": bash(top, commands),
        "share/zsh/site-functions/_hakmem": zsh(top, commands, helps),
    }


def filled(script: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"@([A-Z]+)@", lambda match: parts[match[1]], script)


def flags(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in command._actions if action.option_strings]


def bash(top: argparse.ArgumentParser, commands: Mapping[str, argparse.ArgumentParser]) -> str:
    def spelled(command: argparse.ArgumentParser) -> list[str]:
        return [spelling for flag in flags(command) for spelling in flag.option_strings]

    valued = (
        f'"{name} {spelling}"'
        for name, command in commands.items()
        for flag in flags(command)
        for spelling in flag.option_strings
        if flag.nargs != 0
    )
    names = [option.name for option in table()]
    offered = {
        name: " ".join(spelled(command) + ["--"] * (name in PROGRAM_FOLLOWS))
        for name, command in commands.items()
    }
    parts = {
        "VALUED": " | ".join(valued),
        "COMMANDS": " ".join([*commands, *spelled(top)]),
        "SETTINGS": " ".join(f"{name}=" for name in names),
        "FLAGS": lines(8, (f'"{name} -"*) words="{text}" ;;' for name, text in offered.items())),
        "NAMES": " ".join(names),
        "GROUPS": " ".join(GROUPS),
        "ALLOCATORS": ALLOCATORS,
    }
    return filled(BASH, parts)


def zsh(
    top: argparse.ArgumentParser,
    commands: Mapping[str, argparse.ArgumentParser],
    helps: Mapping[str, str],
) -> str:
    def described(command: argparse.ArgumentParser) -> str:
        return lines(8, (f"{zsh_flag(flag)} \\" for flag in flags(command)))

    facts = (f"{o.name}:default {o.shown(o.value)}" for o in table())
    parts = {
        "NAMES": lines(8, map(quoted, facts)),
        "RUN": described(commands["run"]),
        "DOCTOR": described(commands["doctor"]),
        "OPTIONS": described(commands["options"]),
        "PROFILE": described(commands["profile"]),
        "BENCH": described(commands["bench"]),
        "COMPARE": described(commands["compare"]),
        "ALLOCATORS": ALLOCATORS,
        "COMMANDS": lines(8, (quoted(f"{name}:{helps[name]}") for name in commands)),
        "TOP": described(top),
    }
    return filled(ZSH, parts)


def zsh_flag(flag: argparse.Action) -> str:
    """As in '*'{-o+,--option=}'[help]:NAME=VALUE:action'."""
    only = flag.option_strings[0] in ("-h", "--version")
    again = isinstance(flag, argparse._AppendAction)
    before = "(- *)" if only else "*" if again else ""
    help = re.sub(r"([\[\]])", r"\\\1", str(flag.help))
    value = "" if flag.nargs == 0 else f":{flag.metavar}:{VALUES.get(str(flag.metavar), '')}"
    ends = [("=" if long else "+") if value else "" for long in map(is_long, flag.option_strings)]
    spelled = [spelling + end for spelling, end in zip(flag.option_strings, ends, strict=True)]
    if len(spelled) == 1:
        return quoted(f"{before}{spelled[0]}[{help}]{value}")
    return (
        (quoted(before) if before else "") + f"{{{','.join(spelled)}}}" + quoted(f"[{help}]{value}")
    )


def is_long(spelling: str) -> bool:
    return spelling.startswith("--")


def quoted(text: str) -> str:
    return "'" + text.replace("'", r"'\''") + "'"


def lines(indent: int, texts: Iterable[str]) -> str:
    return "\n".join(" " * indent + text for text in texts)
