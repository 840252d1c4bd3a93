from dataclasses import fields

from pointmend.evaluation.cells import Measurement
from pointmend.experiments.by_shape import worst_first


def cell(p2m: float) -> Measurement:
    return Measurement(**{f.name: 0.0 for f in fields(Measurement)} | {"p2m": p2m})


def test_every_column_has_the_same_say() -> None:
    weak = [cell(1.0), cell(1.0), cell(4.0)]
    strong = [cell(100.0), cell(140.0), cell(120.0)]
    assert worst_first([weak, strong]) == [2, 1, 0]
    assert worst_first([strong]) == [1, 2, 0]
    assert worst_first([[cell(0.0), cell(0.0)]]) == [0, 1]
