"""Command line: the entry point; it runs the command and puts what went wrong into one line."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Sequence

from pointmend import __version__
from pointmend.errors import BatchError, PointmendError

FAILURE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command line.

    Parameters
    ----------
    arguments : what follows the program's name; by default what the shell has passed.

    Returns
    -------
    The exit code: 0, 2 for anything the user can put right, 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file name that is not text must not keep its result from being printed.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if words in (["--version"], ["-V"]):
            print(f"pointmend {__version__}")
        elif words[:1] == ["--print-completion"]:
            _print_completion(words[1:])
        else:
            _run(words)
        sys.stdout.flush()
    except BatchError as error:
        for failure in (*error.failures, str(error)):
            _complain(failure)
        return FAILURE
    except PointmendError as error:
        _complain(str(error))
        return FAILURE
    except MemoryError:
        _complain("not enough memory for this cloud; name a limit with --max-memory, such as 4G")
        return FAILURE
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; Python would complain again when it closes stdout.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except SystemExit as stop:  # after help was printed
        return stop.code if isinstance(stop.code, int) else FAILURE
    return 0


def entry() -> None:
    """What the installed program `pointmend` calls."""
    sys.exit(main())


def _print_completion(shells: list[str]) -> None:
    from .completion import completion_script
    from .parsing import COMMANDS

    print(completion_script(" ".join(shells), COMMANDS), end="")


def _run(words: list[str]) -> None:
    from .parsing import parse

    command = parse(words or ["--help"])
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        command.run()


def _complain(message: str) -> None:
    print("pointmend:", " ".join(message.splitlines()), file=sys.stderr)
