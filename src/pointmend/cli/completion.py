"""Command line: what a shell needs to complete commands, options and their words on Tab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import tyro

from pointmend.errors import InputError

from .model import ModelChoice

SHELLS = ("bash", "zsh")

_SCRIPT = """\
# pointmend for {shell}, made by: pointmend --print-completion {shell}
{before}_pointmend() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} offer=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    offer="{first}"
  else
    case "$command $before" in
{choices}
    esac
    case "$offer$word" in
    -*)
      case "$command" in
{options}
      esac ;;
    esac
  fi
  # With nothing of our own to offer, the shell names files.
  COMPREPLY=()
  [ -z "$offer" ] || COMPREPLY=($(compgen -W "$offer" -- "$word"))
}}
complete -o default -F _pointmend pointmend
"""


@dataclass(frozen=True)
class Option:
    """
    One thing that can be typed after a command.

    Attributes
    ----------
    name : as it is typed, with dashes; the empty word for what stands without a name.
    choices : the words it takes, when there are not many.
    """

    name: str
    choices: tuple[str, ...] = ()


def options_of(command: Any) -> list[Option]:
    """Everything a command's class takes, `--help` first."""
    found = [Option("--help")]
    hints = get_type_hints(command, include_extras=True)
    for field in fields(command):
        if field.name == "choice":
            found += options_of(ModelChoice)[1:]
            continue
        hint = hints[field.name]
        is_positional = tyro.conf.Positional in getattr(hint, "__metadata__", ())
        name = "" if is_positional else f"--{field.name.replace('_', '-')}"
        found.append(Option(name, _choices(hint)))
    return found


def completion_script(shell: str, commands: Mapping[str, Any]) -> str:
    """
    A script that teaches a shell to complete pointmend's commands.

    Parameters
    ----------
    shell : one of SHELLS.
    commands : the classes of all commands, by name.

    Raises
    ------
    InputError
        For another shell.
    """
    if shell not in SHELLS:
        raise InputError(f"--print-completion is {shell!r}; choose one of {', '.join(SHELLS)}")
    choices, options = [], []
    for name, command in commands.items():
        taken = options_of(command)
        names = " ".join(option.name for option in taken if option.name)
        options.append(f'      {name}) offer="{names}" ;;')
        for option in taken:
            if option.choices:
                before = option.name or name  # what has no name of its own follows the command
                words = " ".join(option.choices)
                choices.append(f'    "{name} {before}") offer="{words}" ;;')
    return _SCRIPT.format(
        shell=shell,
        # zsh understands bash's way when it is asked to.
        before="autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "",
        first=" ".join([*commands, "--help", "--version"]),
        choices="\n".join(choices),
        options="\n".join(options),
    )


def _choices(hint: Any) -> tuple[str, ...]:
    """The words of a type that is, or holds, a Literal of words."""
    if get_origin(hint) is Literal:
        return tuple(word for word in get_args(hint) if isinstance(word, str))
    inner = (part for part in get_args(hint) if get_origin(part) or get_args(part))
    return next((words for part in inner if (words := _choices(part))), ())
