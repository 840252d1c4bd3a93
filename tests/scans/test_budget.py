import pytest

from pointmend.errors import InputError
from pointmend.scans.budget import (
    PROGRAM,
    TILE_POINTS,
    default_memory,
    expected_seconds,
    megabytes,
    memory_from,
    parse_size,
    plan,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4G", 4e9), ("800M", 8e8), ("1.5 GB", 1.5e9), ("2gib", 2e9), ("900000", 9e5), ("1T", 1e12)],
)
def test_sizes(text: str, size: float) -> None:
    assert parse_size(text) == size
    assert memory_from(text) == size


@pytest.mark.parametrize("text", ["", "G", "much", "-4G", "4 apples", "1e9"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(InputError, match="no amount of memory; write 4G"):
        parse_size(text)


def test_small_clouds_are_held_in_memory_in_one_tile() -> None:
    budget = plan(10_000, 200_000, 4 * 10**9, can_stream=True)
    assert (budget.streamed, budget.tiles) == (False, 1)
    assert budget.memory < 10**9


def test_large_clouds_stream_where_they_can() -> None:
    streamed = plan(10**8, 3 * 10**9, 4 * 10**9, can_stream=True)
    assert streamed.streamed
    assert streamed.tile_points == TILE_POINTS
    assert streamed.memory <= 4 * 10**9
    small = plan(10**8, 3 * 10**9, 10**9, can_stream=True)
    assert small.tile_points < TILE_POINTS
    assert small.tiles > streamed.tiles
    held = plan(10**6, 3 * 10**7, 2 * 10**9, can_stream=False)
    assert not held.streamed
    assert held.memory <= 2 * 10**9


@pytest.mark.parametrize("can_stream", [True, False])
def test_too_little_memory_is_said_beforehand(can_stream: bool) -> None:
    with pytest.raises(InputError, match=r"need .* of memory at least"):
        plan(10**8, 3 * 10**9, PROGRAM, can_stream=can_stream)


def test_default_and_words() -> None:
    assert default_memory() > 10**8
    assert memory_from(None) is None
    assert megabytes(1_500_000_000) == "1.5 GB"
    assert megabytes(80_000_000) == "80 MB"
    budget = plan(10**6, 10**7, 4 * 10**9, can_stream=True)
    assert expected_seconds(budget, 5, 2) == pytest.approx(expected_seconds(budget, 5, 1) / 2)
    assert expected_seconds(budget, 11, 1) == pytest.approx(2 * expected_seconds(budget, 5, 1))
