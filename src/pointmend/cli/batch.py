"""Command line: one file after the other, where one bad one does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pointmend.errors import BatchError, PointmendError

from .report import print_json

Work = Callable[[Path, Path], dict[str, Any]]


def run_batch(pairs: Sequence[tuple[Path, Path]], work: Work, as_json: bool) -> None:
    """
    Do the work for every input and its output, and print what it found.

    Parameters
    ----------
    work : given an input and its output, does it and returns the facts.
    as_json : print the facts, as one JSON object or a list of them for several inputs.

    Raises
    ------
    BatchError
        At the end, if some of several inputs failed. A single one fails with its own error.
    """
    results: list[dict[str, Any]] = []
    failures: list[str] = []
    for source, target in pairs:
        try:
            results.append(work(source, target))
        except PointmendError as error:
            if len(pairs) == 1:
                raise
            failures.append(str(error))
    if as_json:
        print_json(results[0] if len(pairs) == 1 else results)
    if failures:
        raise BatchError(failures, len(pairs))
