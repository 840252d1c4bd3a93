"""Viewer: work that takes long, one piece at a time for all tabs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Cancelled(Exception):
    """Raised inside a job whose owner no longer wants it; nothing went wrong."""


class Job:
    """
    A piece of work that waits, runs and can be cancelled.

    Parameters
    ----------
    work : does it, and calls `check` on the job from time to time.
    wait : is told how many jobs are before this one, whenever that changes.
    fail : is told what ended the work early, be it `Cancelled`.
    """

    def __init__(
        self,
        work: Callable[[Job], None],
        wait: Callable[[int], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self.work = work
        self.wait = wait
        self.fail = fail
        self._unwanted = threading.Event()
        self._over = threading.Event()

    def cancel(self) -> None:
        """Say that the result is not wanted any more."""
        self._unwanted.set()

    def check(self) -> None:
        """Leave the work by an exception if it was cancelled."""
        if self._unwanted.is_set():
            raise Cancelled

    def finished(self, timeout: float | None = None) -> bool:
        """Wait until the job is over, and tell whether it is."""
        return self._over.wait(timeout)

    def run(self) -> None:
        """Do the work, unless it is not wanted any more."""
        try:
            self.check()
            self.work(self)
        except Exception as error:  # whatever it is, the worker goes on with the next job
            self.fail(error)
        finally:
            self._over.set()


class Runner:
    """One worker for all: two runs at a time would only take each other's cores and memory."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._running: Job | None = None
        self._thread = threading.Thread(target=self._work, name="pointmend-runner", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Put a job at the end of the queue."""
        with self._changed:
            self._jobs.append(job)
            before = len(self._jobs) - 1 + (self._running is not None)
            self._changed.notify()
        if before:
            job.wait(before)

    def stop(self, patience: float = 10.0) -> None:
        """Cancel everything, and wait a while for the running job to notice."""
        with self._changed:
            self._stopped = True
            for job in (*self._jobs, *([self._running] if self._running else [])):
                job.cancel()
            self._changed.notify()
        self._thread.join(patience)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.wait_for(lambda: self._jobs or self._stopped)
                if not self._jobs:
                    return
                self._running = job = self._jobs.popleft()
                waiting = list(self._jobs)
            for place, other in enumerate(waiting, start=1):
                other.wait(place)
            job.run()
