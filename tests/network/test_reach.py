import torch

from pointmend.network.reach import reach_of, touched


def candidates_of(count: int, k: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    others = torch.randint(0, count, (count, k - 1), generator=generator)
    return torch.cat([torch.arange(count)[:, None], others], dim=1)


def test_touched_rows_are_those_named_each_once_in_order() -> None:
    index = torch.tensor([[7, 2], [2, 5]])
    rows, place = touched(index, 9)
    assert rows.tolist() == [2, 5, 7]
    assert torch.equal(rows[place[index]], index)


def test_reach_goes_back_to_everything_the_wanted_rows_depend_on() -> None:
    candidates = candidates_of(50, 4)
    wanted = torch.tensor([3, 11, 30])
    reach = reach_of(candidates, wanted, layers=2)
    once = torch.unique(candidates[wanted])
    assert reach.inputs is not None
    assert torch.equal(reach.inputs, torch.unique(candidates[once]))
    first, second = reach.candidates
    assert torch.equal(reach.inputs[first], candidates[once])
    assert torch.equal(once[second], candidates[wanted])


def test_without_a_wish_every_layer_computes_every_row() -> None:
    candidates = candidates_of(50, 4)
    reach = reach_of(candidates, None, layers=3)
    assert reach.inputs is None
    assert len(reach.candidates) == 3
    assert all(table is candidates for table in reach.candidates)
