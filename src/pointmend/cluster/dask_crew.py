"""Room `cluster`: the workers of a dask cluster, here or elsewhere."""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from pointmend.errors import InputError, PointmendError

from .crew import Outcome, one_line
from .run import ATTEMPTS
from .tasks import Task

if TYPE_CHECKING:
    from distributed import Client

# Seconds in which a scheduler has to answer, and to have a worker.
ANSWER = 20.0
FIRST_WORKER = 60.0

# Seconds after which the workers are counted again: to ask for each task would cost more than it.
RECOUNT = 1.0

# How workers that are started here differ from dask's own idea of them.
LOCAL: dict[str, object] = {
    "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
    # A worker keeps nothing but the tile it is at: to wait, or to write to disk, would not make it
    # smaller.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # dask also makes workers return freed memory at once, and looks at what they do a hundred times
    # a second: with both, tiles took 35 % more CPU time than in one process, without 7 %
    # (`python -m benchmarks.cluster`).
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
    "distributed.worker.profile.interval": "200ms",
}

GONE = (
    "the cluster's scheduler is gone; all that is finished is kept: start it again, and then the "
    "same command"
)


class ClusterLost(PointmendError):
    """The scheduler is gone; what is finished is kept."""


class DaskCrew:
    """
    The workers that a client can reach.

    No more tasks are handed out than there are threads to do them, so that a worker that dies
    takes no other task with it than the one that it was at.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._threads, self._counted = 0, -RECOUNT

    def do(self, task: Task, work: str, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Do a task for every number; one that raises is tried again elsewhere."""
        from distributed import CancelledError, as_completed
        from distributed.comm.core import CommClosedError

        waiting, number_of = deque(numbers), dict[object, int]()
        running = as_completed(loop=self._client.loop)

        def hand_out() -> None:
            while waiting and running.count() < self._at_once():
                number = waiting.popleft()
                future = self._client.submit(
                    task, work, number, pure=False, retries=ATTEMPTS - 1, key=_key(task, number)
                )
                number_of[future.key] = number
                running.add(future)

        try:
            hand_out()
            for future in running:
                if future.status == "finished":
                    yield Outcome(number_of[future.key], future.result())
                elif future.status == "error":
                    yield Outcome(number_of[future.key], None, _reason(future.exception()))
                elif future.status == "cancelled":
                    raise ClusterLost(GONE)
                else:
                    # Its worker died before it could tell: it is done once more.
                    running.add(future)
                hand_out()
        except (CommClosedError, CancelledError) as error:
            raise ClusterLost(GONE) from error

    def _at_once(self) -> int:
        """How many tasks can run at once; workers come and go."""
        if monotonic() - self._counted > RECOUNT:
            threads: dict[str, int] = self._client.nthreads()
            self._threads, self._counted = max(1, sum(threads.values())), monotonic()
        return self._threads


def _key(task: Task, number: int) -> str:
    """A name for a task that people recognise in dask's dashboard."""
    return f"{getattr(task, '__name__', 'task')}-{number}-{os.urandom(4).hex()}"


def _reason(error: BaseException) -> str:
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return (
            f"{error.allowed_failures + 1} workers died of it "
            "(is there enough memory? --max-memory makes tiles smaller)"
        )
    return f"it failed {ATTEMPTS} times: {one_line(error)}"


def parse_local(address: str) -> int | None:
    """How many workers `local` or `local:N` asks for; None if the address means another cluster."""
    found = re.fullmatch(r"local(?::(.*))?", address)
    if found is None:
        return None
    if found[1] is None:
        return os.cpu_count() or 1
    if not found[1].isdecimal() or int(found[1]) < 1:
        raise InputError(f"--cluster {address}: write local:N with at least one worker")
    return int(found[1])


def check_installed() -> None:
    """Say how to get dask where it is missing."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError("--cluster needs dask: pip install 'pointmend[cluster]'") from None


@contextmanager
def dask_crew(
    address: str, max_memory: int | None = None, show: Callable[[str], None] = lambda link: None
) -> Iterator[DaskCrew]:
    """
    The workers at an address, which are sent home at the end if they were started here.

    Parameters
    ----------
    address : of a scheduler, or `local[:N]` for N worker processes on this machine.
    max_memory : bytes for each worker that is started here.
    show : is told the address of dask's dashboard.
    """
    check_installed()
    from distributed import Client

    workers = parse_local(address)
    with ExitStack() as stack:
        stack.enter_context(_one_line_only())
        if workers is not None:
            client = stack.enter_context(start_here(workers, max_memory))
        else:
            try:
                client = stack.enter_context(Client(address, timeout=ANSWER))
            except (OSError, ValueError, TimeoutError) as error:
                raise InputError(
                    f"no dask scheduler answers at {address}; write it as tcp://HOST:8786, "
                    f"or local:N for this machine ({one_line(error)})"
                ) from error
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER)
        except TimeoutError as error:
            raise InputError(f"the scheduler at {address} has no worker; start some") from error
        show(client.dashboard_link)
        yield DaskCrew(client)


@contextmanager
def _one_line_only() -> Iterator[None]:
    """Keep dask's own pages of text about what goes wrong off the screen."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def start_here(workers: int, max_memory: int | None) -> Iterator[Client]:
    """Start worker processes of one thread each, and stop them at the end."""
    import dask
    from distributed import Client, LocalCluster

    # Above half as much again as was planned for, something is wrong, and a worker is ended.
    limit = "auto" if max_memory is None else max_memory * 3 // 2
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(LOCAL))
        try:
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=limit,
                preload="pointmend.cluster.preload",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        except (OSError, RuntimeError) as error:
            raise InputError(f"{workers} workers cannot be started: {one_line(error)}") from error
        stack.enter_context(cluster)
        yield stack.enter_context(Client(cluster))
