import threading
from collections.abc import Iterator

import pytest

from pointmend.viewer.jobs import Cancelled, Job, Runner


@pytest.fixture
def runner() -> Iterator[Runner]:
    started = Runner()
    yield started
    started.stop()


def test_jobs_run_one_after_the_other_and_are_told_their_place(runner: Runner) -> None:
    go, order, places = threading.Event(), list[str](), list[tuple[str, int]]()

    def job(name: str) -> Job:
        def work(job: Job) -> None:
            go.wait(10)
            order.append(name)

        return Job(work, lambda before: places.append((name, before)), lambda error: None)

    jobs = [job(name) for name in "abc"]
    for each in jobs:
        runner.submit(each)
    go.set()
    assert all(each.finished(10) for each in jobs)
    assert order == ["a", "b", "c"]
    assert ("b", 1) in places
    assert ("c", 2) in places
    assert places[-1] == ("c", 1)
    assert "a" not in {name for name, _ in places}


def test_a_job_that_fails_does_not_stop_the_next(runner: Runner) -> None:
    failures, done = list[Exception](), list[int]()

    def break_down(job: Job) -> None:
        raise ZeroDivisionError

    bad = Job(break_down, lambda before: None, failures.append)
    good = Job(lambda job: done.append(1), lambda before: None, failures.append)
    runner.submit(bad)
    runner.submit(good)
    assert good.finished(10)
    assert done == [1]
    assert [type(error) for error in failures] == [ZeroDivisionError]


def test_jobs_are_cancelled_while_they_wait_and_while_they_run(runner: Runner) -> None:
    started, failures = threading.Event(), list[Exception]()

    def work(job: Job) -> None:
        started.set()
        while True:
            job.check()

    running = Job(work, lambda before: None, failures.append)
    waiting = Job(lambda job: pytest.fail("it ran"), lambda before: None, failures.append)
    runner.submit(running)
    runner.submit(waiting)
    assert started.wait(10)
    waiting.cancel()
    running.cancel()
    assert waiting.finished(10)
    assert [type(error) for error in failures] == [Cancelled, Cancelled]


def test_the_end_cancels_everything() -> None:
    runner, failures = Runner(), list[Exception]()

    def work(job: Job) -> None:
        while True:
            job.check()

    jobs = [Job(work, lambda before: None, failures.append) for _ in range(3)]
    for job in jobs:
        runner.submit(job)
    runner.stop()
    assert all(job.finished(0) for job in jobs)
    assert len(failures) == 3
