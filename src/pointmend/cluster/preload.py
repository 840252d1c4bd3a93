"""Room `cluster`: what worker processes that are started here do first."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """
    Leave Ctrl-C to the process that started the worker, and will end it.

    A terminal sends it to all; dask calls this function by its name.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
