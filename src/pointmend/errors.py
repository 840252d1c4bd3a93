"""Every error a user can cause, as one small family: the edge prints them in one line."""


class PointmendError(Exception):
    """Base of all errors that are explained to the user in one line (exit code 2)."""


class InputError(PointmendError, ValueError):
    """The points, the options or the model handed over cannot be used as they are."""


class FileFormatError(PointmendError):
    """A file is not what its name or its header says, or cannot be written as asked."""
