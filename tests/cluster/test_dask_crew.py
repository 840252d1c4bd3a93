"""Plans carried out by real worker processes, some of which are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from distributed import Client, WorkerPlugin

from pointmend.cluster import dask_crew as crew_module
from pointmend.cluster.dask_crew import ClusterLost, DaskCrew, dask_crew, parse_local, start_here
from pointmend.cluster.plan import Plan
from pointmend.cluster.run import DENOISING, PartReport, Run, Standing, Tell
from pointmend.errors import InputError

from .conftest import MakePlan, outputs


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Three worker processes."""
    with start_here(3, None) as client:
        yield client


def on_cluster(client: Client, plan: Plan, weights: Path, tell: Tell) -> list[PartReport]:
    return Run(plan).carry_out(weights, lambda: nullcontext(DaskCrew(client)), tell)


def pids(client: Client) -> dict[str, int]:
    found: dict[str, int] = client.run(os.getpid)
    return found


def test_workers_write_the_same_bytes_as_one_process_and_load_the_model_once(
    client: Client,
    fields: list[Path],
    weights: Path,
    make_plan: MakePlan,
    reference: list[bytes],
) -> None:
    plan, seen = make_plan(fields), list[Standing]()
    on_cluster(client, plan, weights, seen.append)
    assert outputs(plan) == reference
    assert [s.done for s in seen if s.stage == DENOISING] == [0, 1, 2, 3, 4, 5]

    def loads() -> int:
        from pointmend.cluster import tasks

        return tasks._denoiser.cache_info().misses

    found: dict[str, int] = client.run(loads)
    assert len(found) == 3
    assert max(found.values()) == 1


def test_a_worker_killed_at_a_tile_costs_nothing(
    client: Client,
    fields: list[Path],
    weights: Path,
    make_plan: MakePlan,
    reference: list[bytes],
) -> None:
    client.wait_for_workers(3)
    plan, before = make_plan(fields), pids(client)
    victims: list[int] = []

    def kill_one(standing: Standing) -> None:
        if standing.stage == DENOISING and standing.done == 1 and not victims:
            busy = [worker for worker, keys in client.processing().items() if keys]
            victims.append(before[busy[0]])
            os.kill(victims[0], signal.SIGKILL)

    reports = on_cluster(client, plan, weights, kill_one)
    assert all(report.tally is not None for report in reports)
    assert victims
    assert victims[0] not in pids(client).values()
    assert outputs(plan) == reference


def poison(client: Client, plan: Plan, tile: int, deadly: bool, attempts: Path) -> None:
    """
    Let a tile of a plan kill its worker, or raise, on all workers of today and tomorrow.

    Each attempt leaves a dot in the file `attempts`.
    """
    folder = str(Run(plan).work.path)

    class Poison(WorkerPlugin):
        def setup(self, worker: object) -> None:
            from pointmend.cluster import tasks

            honest = tasks._survey

            def poisoned(work: str) -> object:
                if work == folder and worker_is_at(worker, tile):
                    with attempts.open("a") as file:
                        file.write(".")
                    if deadly:
                        os.kill(os.getpid(), signal.SIGKILL)
                    raise ValueError("no luck\nwith this one")
                return honest(work)

            def worker_is_at(worker: object, tile: int) -> bool:
                tasks_here = worker.state.executing  # type: ignore[attr-defined]
                return any(ts.key.startswith(f"denoise_one-{tile}-") for ts in tasks_here)

            tasks._survey = poisoned  # type: ignore[assignment]

    client.register_plugin(Poison(), name=f"poison-{folder}")


@pytest.mark.parametrize("deadly", [True, False])
def test_a_tile_that_fails_three_times_costs_its_own_files_only(
    client: Client,
    fields: list[Path],
    weights: Path,
    make_plan: MakePlan,
    reference: list[bytes],
    tmp_path: Path,
    deadly: bool,
) -> None:
    plan, attempts = make_plan(fields), tmp_path / "attempts"
    poison(client, plan, 0, deadly, attempts)
    reports = on_cluster(client, plan, weights, lambda standing: None)
    failed = [report for report in reports if report.tally is None]
    assert 1 <= len(failed) < 3
    reason = "3 workers died of it" if deadly else "it failed 3 times: no luck with this one"
    for report in failed:
        assert f"{report.source}: not written, because tile 0 was given up" in report.error
        assert reason in report.error
        assert not report.target.exists()
    for number, report in enumerate(reports):
        if report.tally is not None:
            assert report.target.read_bytes() == reference[number]
    assert attempts.read_text() == "..."


@pytest.fixture
def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def start(*words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_scheduler_that_dies_is_told_of_and_the_next_goes_on(
    fields: list[Path], weights: Path, make_plan: MakePlan, reference: list[bytes], free_port: int
) -> None:
    plan, address = make_plan(fields), f"tcp://127.0.0.1:{free_port}"
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", str(free_port)]
    processes = [
        start(*scheduler),
        start("worker", address, "--nthreads", "1", "--no-nanny"),
    ]

    def kill_scheduler(standing: Standing) -> None:
        if standing.stage == DENOISING and standing.done == 2:
            processes[0].kill()

    try:
        with pytest.raises(ClusterLost, match="scheduler is gone"):
            Run(plan).carry_out(weights, lambda: dask_crew(address), kill_scheduler)
        processes[1].wait(timeout=60)  # a worker without a scheduler goes home
        processes += [
            start(*scheduler),
            start("worker", address, "--nthreads", "1", "--no-nanny"),
        ]
        seen: list[Standing] = []
        Run(plan).carry_out(weights, lambda: dask_crew(address), seen.append)
        assert next(s.done for s in seen if s.stage == DENOISING) >= 2
        assert outputs(plan) == reference
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_addresses(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    assert parse_local("local:3") == 3
    assert parse_local("local") == os.cpu_count()
    assert parse_local("tcp://localhost:8786") is None
    for wrong in ("local:0", "local:x", "local:"):
        with pytest.raises(InputError, match="local:N"):
            parse_local(wrong)
    monkeypatch.setattr(crew_module, "ANSWER", 0.5)
    with pytest.raises(InputError, match="no dask scheduler answers"), dask_crew("nonsense"):
        pass
    start_time = time.monotonic()
    with (
        pytest.raises(InputError, match="no dask scheduler answers"),
        dask_crew(f"tcp://127.0.0.1:{free_port}"),
    ):
        pass
    assert time.monotonic() - start_time < 10.0
