"""Command line: from the words of a command line to a command, or to one line saying why not."""

from __future__ import annotations

import contextlib
import difflib
import io
import re
from dataclasses import fields
from typing import Any, Protocol, get_type_hints

import tyro

from pointmend.errors import InputError

from .completion import options_of
from .convert import Convert
from .demo import Demo
from .denoise import Denoise
from .evaluate import Evaluate
from .inspect import Inspect
from .release import Release
from .reproduce import Reproduce
from .train import Train
from .view import View


class Command(Protocol):
    """The options of a command, which know what to do."""

    def run(self) -> None:
        """Do it, and print the result."""


COMMANDS: dict[str, type[Command]] = {
    "denoise": Denoise,
    "inspect": Inspect,
    "convert": Convert,
    "view": View,
    "train": Train,
    "release": Release,
    "evaluate": Evaluate,
    "reproduce": Reproduce,
    "demo": Demo,
}

_DESCRIPTION = """\
Remove noise from 3D point clouds.

Points are moved, never added, dropped or reordered; all attributes are kept.

examples:
  pointmend denoise scan.laz              write scan.denoised.laz
  pointmend denoise scan.e57 clean.ply    LAS, LAZ, E57, PLY, PCD, XYZ and more, in any combination
  pointmend denoise *.laz --out clean/    many at once
  pointmend inspect scan.laz              how noisy is it?
  pointmend convert scan.e57 scan.laz     another format, and what it cannot hold
  pointmend view scan.laz                 see it get clean, in the browser
  pointmend train meshes/ --out run       learn from your own shapes
  pointmend release run/checkpoint.safetensors my-model --data meshes/
  pointmend evaluate meshes/ --methods jet pointmend
  pointmend reproduce table1 --data DATA  the paper's tables, ours beside them
  pointmend demo                          see it work on a cloud in the box
  pointmend denoise --help                all options of a command
  pointmend --print-completion bash       completion on Tab for your shell, or zsh
  pointmend --version"""

# What tyro says, and what we say instead.
_PLAIN_WORDS = (
    (
        r"Error parsing (\S+): invalid literal for int.*: (.*)",
        r"\1 is \2; give a whole number",
    ),
    (r"Error parsing (\S+): could not convert string to float: (.*)", r"\1 is \2; give a number"),
    (r"Error parsing (\S+): .* matching FLOAT .* \[(.*)\]", r"\1 is \2; give a number"),
    (r"Error parsing (\S+): .* matching INT .* \[(.*)\]", r"\1 is \2; give a whole number"),
    (r"invalid choice (.*) for argument '(.*)'. Expected.*\((.*)\)", r"\2 is \1; choose one of \3"),
    (r"Missing from pointmend \w+: (\S+) .*", r"\1 is missing"),
    (r"Missing value for argument '(.*)'.*", r"\1 needs a value"),
    (r"Unrecognized options: (.*)", r"do not know what to do with \1"),
)


def parse(words: list[str]) -> Command:
    """
    The command that the words of a command line ask for.

    Parameters
    ----------
    words : at least one.

    Raises
    ------
    InputError
        If they make no sense.
    SystemExit
        After help was asked for and printed.
    """
    first = words[0]
    if not first.startswith("-") and first not in COMMANDS:
        choices = ", ".join(COMMANDS)
        raise InputError(f"unknown command {first!r}; choose one of {choices}")
    if first in COMMANDS:
        _check_options(first, words[1:])
        words = [first, *paths_first(COMMANDS[first], words[1:])]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            command: Command = tyro.extras.subcommand_cli_from_dict(
                dict(COMMANDS),
                prog="pointmend",
                description=_DESCRIPTION,
                args=words,
                config=(tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone),
            )
    except SystemExit as stop:
        if stop.code:
            name = f" {first}" if first in COMMANDS else ""
            mistake = explain_mistake(said.getvalue())
            raise InputError(f"{mistake} (see pointmend{name} --help)") from None
        raise
    return command


def paths_first(command: Any, words: list[str]) -> list[str]:
    """
    The words of a command with its paths in front, which may stand anywhere between options.

    argparse wants the words of one list side by side.

    Parameters
    ----------
    command : the command's class.
    """
    if "paths" not in {field.name for field in fields(command)}:
        return words
    hints = get_type_hints(command)
    flags = {f"--{name.replace('_', '-')}" for name, kind in hints.items() if kind is bool}
    flags |= {"--help", "-h"}
    paths: list[str] = []
    options: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            paths.append(word)
        else:
            options.append(word)
            takes_value = "=" not in word and word.replace("_", "-") not in flags
            value = next(rest, None) if takes_value else None
            options.extend([] if value is None else [value])
    return paths + options


def option_names(command: Any) -> list[str]:
    """The long options of a command's class, as they are typed."""
    return [option.name for option in options_of(command) if option.name]


def explain_mistake(message: str) -> str:
    """
    The first section of tyro's framed message about a mistake, in one line and plain words.

    Parameters
    ----------
    message : a title, then sections divided by rules, in a frame and in colour where the terminal
        can show them.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", message)
    lines: list[str] = []
    for line in plain.splitlines()[1:]:
        text = line.strip().strip("│").strip()
        if text.strip("─-╰╯"):
            lines.append(text)
        elif lines:
            break
    text = " ".join(lines).removesuffix(" (required)").removesuffix(".")
    for pattern, words in _PLAIN_WORDS:
        if found := re.fullmatch(pattern, text):
            return found.expand(words)
    return text or "these arguments make no sense"


def _check_options(name: str, words: list[str]) -> None:
    """Refuse options the command does not have, and guess which was meant."""
    known = option_names(COMMANDS[name])
    for word in words:
        option = word.split("=")[0].replace("_", "-")
        if not option.startswith("--") or option.startswith("--tyro-") or option in known:
            continue
        similar = difflib.get_close_matches(option, known, n=1, cutoff=0.75)
        hint = f"; did you mean {similar[0]}?" if similar else f" (see pointmend {name} --help)"
        raise InputError(f"unknown option {option}{hint}")
