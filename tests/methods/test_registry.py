from pathlib import Path

import numpy as np
import pytest

from pointmend.denoising.options import SamplerOptions
from pointmend.errors import InputError
from pointmend.methods.method import Task
from pointmend.methods.registry import METHODS, PLAIN, contestant, contestants, our_contestant


def test_methods_come_in_the_order_asked_for_under_names_of_their_own() -> None:
    found = contestants(["jet", "identity", "pointmend"])
    assert [each.name for each in found] == [found[0].name, "noisy input", "pointmend"]
    names = [contestant(name).name for name in PLAIN]
    assert len(set(names)) == len(names)


def test_a_signature_tells_settings_apart() -> None:
    ours = [
        our_contestant(),
        our_contestant(steps=3),
        our_contestant(eta=0.5),
        our_contestant(options=SamplerOptions(plan="one-step")),
        contestant("pointmend+spread"),
        contestant("identity"),
    ]
    assert len({each.signature for each in ours}) == len(ours)
    assert our_contestant(name="another name").signature == ours[0].signature


def test_unknown_methods_and_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown method 'nonsense'; choose one of identity"):
        contestant("nonsense")
    with pytest.raises(InputError, match="SBD's published weights are not there"):
        contestant("sbd", data=tmp_path)
    with pytest.raises(InputError, match="SBD's published weights are not there"):
        contestant("sbd+our")
    assert {"sbd", "sbd+our", "pointmend", "pointmend+spread"} <= set(METHODS)


def test_ours_does_not_look_at_the_known_level() -> None:
    points = np.random.default_rng(0).random((200, 3))
    method = our_contestant().method
    assert np.array_equal(method(Task(points, 0.01)), method(Task(points, 0.03)))
