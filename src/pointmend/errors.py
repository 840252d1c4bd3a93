"""Every error a user can cause, as one small family: the edge prints them in one line."""

from __future__ import annotations


class PointmendError(Exception):
    """Base of all errors that are explained to the user in one line (exit code 2)."""


class InputError(PointmendError, ValueError):
    """The points, the options or the model handed over cannot be used as they are."""


class FileFormatError(PointmendError):
    """A file is not what its name or its header says, or cannot be written as asked."""

    names_file = False
    """Whether the message begins with the file's path already."""

    def about(self, path: object) -> FileFormatError:
        """The same error with the path of its file in front."""
        if self.names_file:
            return self
        named = type(self)(f"{path}: {self}")
        named.names_file = True
        return named


class NotInPieces(FileFormatError):
    """This file can only be read as a whole."""


class BatchError(PointmendError):
    """Some of several files failed; the others are done."""

    def __init__(self, failures: list[str], count: int) -> None:
        super().__init__(f"{len(failures)} of {count} files failed")
        self.failures = failures
