import pytest
import torch
from torch import Tensor

from pointmend.chunks import chunks, in_chunks, pick, take


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11])
def test_slices_cover_every_row_once(count: int) -> None:
    size = 5 * torch.get_num_threads()
    slices = list(chunks(count, 5))
    assert [row for part in slices for row in range(count)[part]] == list(range(count))
    assert all(part.stop - part.start <= size for part in slices)
    assert len(slices) == max(1, -(-count // size))


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_chunks_give_what_all_rows_at_once_give(count: int) -> None:
    table, seen = torch.arange(2.0 * count).reshape(count, 2), []

    def double(rows: slice) -> Tensor:
        seen.append(rows)
        return 2.0 * table[rows]

    with torch.no_grad():
        assert torch.equal(in_chunks(double, table, 3), 2.0 * table)
    assert len(seen) == len(list(chunks(count, 3)))


def test_learning_takes_all_rows_at_once() -> None:
    table, weight = torch.ones(100, 2), torch.ones(2, requires_grad=True)
    slices = []

    def weigh(rows: slice) -> Tensor:
        slices.append(rows)
        return table[rows] * weight

    (gradient,) = torch.autograd.grad(in_chunks(weigh, table, 3).sum(), weight)
    assert slices == [slice(0, 100)]
    assert gradient.tolist() == [100.0, 100.0]


def test_rows_of_a_choice() -> None:
    table, chosen = torch.arange(10.0), torch.tensor([9, 3, 5])
    assert take(table, None) is table
    assert take(table, pick(None, slice(1, 3))).tolist() == [1.0, 2.0]
    assert take(table, pick(chosen, slice(1, 3))).tolist() == [3.0, 5.0]
