"""Room `cluster`: who does the work; here, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pointmend.errors import PointmendError

from .tasks import Task, Value


@dataclass(frozen=True)
class Outcome:
    """
    What came of one task.

    Attributes
    ----------
    number : of the task.
    value : what it returned; None if it failed.
    error : why it failed, in one line.
    """

    number: int
    value: Value | None
    error: str = ""


class Crew(Protocol):
    """Workers, one or many."""

    def do(self, task: Task, work: str, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Do a task for every number, and tell of each as it is done, in any order."""


class AloneHere:
    """This process, one task after the other."""

    def do(self, task: Task, work: str, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Do a task for every number."""
        for number in numbers:
            try:
                yield Outcome(number, task(work, number))
            except (PointmendError, OSError, MemoryError) as error:
                yield Outcome(number, None, one_line(error))


def one_line(error: BaseException) -> str:
    """What an error says, or at least its name."""
    return " ".join(str(error).split()) or type(error).__name__
