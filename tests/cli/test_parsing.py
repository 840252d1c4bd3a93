import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pointmend.cli.denoise import Denoise
from pointmend.cli.inspect import Inspect
from pointmend.cli.parsing import explain_mistake, option_names, parse

Run = Callable[..., tuple[int, str, str]]


def test_words_become_options() -> None:
    words = "denoise a.ply b.xyz --steps 3 --sigma 0.5 --write-displacement --model m --threads 2"
    command = parse(words.split())
    assert isinstance(command, Denoise)
    assert command.paths == (Path("a.ply"), Path("b.xyz"))
    assert (command.steps, command.sigma, command.write_displacement) == (3, 0.5, True)
    assert (command.choice.model, command.choice.threads) == ("m", 2)
    assert not command.overwrite


def test_options_may_stand_anywhere_and_have_underscores() -> None:
    words = "denoise --write_displacement a.ply --steps=3 b.ply --sigma 2 --overwrite c.ply"
    command = parse(words.split())
    assert isinstance(command, Denoise)
    assert command.paths == (Path("a.ply"), Path("b.ply"), Path("c.ply"))
    assert (command.steps, command.sigma) == (3, 2.0)
    assert (command.write_displacement, command.overwrite) == (True, True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "foo",
            "unknown command 'foo'; choose one of denoise, inspect, convert, view, train, release, "
            "evaluate, reproduce, demo",
        ),
        ("--foo", "do not know what to do with --foo (see pointmend --help)"),
        ("denoise", "IN is missing: name at least one file"),
        ("inspect", "IN is missing: name at least one file"),
        ("demo a", "do not know what to do with a (see pointmend demo --help)"),
        ("denoise a --steps", "--steps needs a value (see pointmend denoise --help)"),
        (
            "denoise a --steps x",
            "--steps is 'x'; give a whole number (see pointmend denoise --help)",
        ),
        ("denoise a --eta x", "--eta is 'x'; give a number (see pointmend denoise --help)"),
        ("denoise a --sigma x", "--sigma is 'x'; give a number (see pointmend denoise --help)"),
        (
            "inspect a --threads x",
            "--threads is 'x'; give a whole number (see pointmend inspect --help)",
        ),
        (
            "denoise a --mode x",
            "--mode is 'x'; choose one of 'synchronised', 'independent' "
            "(see pointmend denoise --help)",
        ),
        ("denoise --sigmas 1 a", "unknown option --sigmas; did you mean --sigma?"),
        ("inspect --steps 1 a", "unknown option --steps (see pointmend inspect --help)"),
    ],
)
def test_mistakes_are_explained_in_one_line(run: Run, line: str, message: str) -> None:
    assert run(*line.split()) == (2, "", f"pointmend: {message}\n")


def test_only_options_count_as_options() -> None:
    assert option_names(Inspect) == [
        "--help",
        "--picture",
        "--overwrite",
        "--max-memory",
        "--model",
        "--device",
        "--threads",
        "--json",
    ]


FRAMED = """\
╭─ Title ──╮
│ One      │
│   two.   │
│ ──────── │
│ more     │
╰──────────╯
"""
UNFRAMED = """\
 Title
 ----------
  One
    two.
  ---------
  more

"""


@pytest.mark.parametrize("message", [FRAMED, UNFRAMED, FRAMED.replace("│", "\x1b[31m│\x1b[0m")])
def test_first_section_is_what_matters(message: str) -> None:
    assert explain_mistake(message) == "One two"


def test_silence_is_explained_too() -> None:
    assert explain_mistake("") == "these arguments make no sense"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_one_plain_line_on_a_terminal_too() -> None:
    ours, theirs = os.openpty()
    words = [sys.executable, "-m", "pointmend", "denoise", "a", "--steps", "x"]
    done = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(theirs)
    os.close(ours)
    message = "--steps is 'x'; give a whole number (see pointmend denoise --help)"
    assert (done.returncode, done.stderr) == (2, f"pointmend: {message}\n")
