"""What a network says and sees of a noisy cloud, put together."""

import numpy as np
import pytest

from pointmend.denoising.first_look import FirstLook, trimmed, trimmed_rms


def test_rows_and_putting_together_keep_what_belongs_to_a_point_together() -> None:
    rng = np.random.default_rng(0)
    whole = FirstLook(*(rng.standard_normal((10, columns)) for columns in (3, 6, 2)))
    first = np.arange(10) < 4
    again = FirstLook.together([whole.rows(first), whole.rows(np.arange(4, 10))])
    for name in ("scores", "spreads", "tails"):
        assert np.array_equal(getattr(again, name), getattr(whole, name))
        assert np.array_equal(getattr(whole.rows(slice(3)), name), getattr(whole, name)[:3])


def test_the_longest_scores_are_left_out() -> None:
    scores = np.zeros((100, 3))
    scores[:, 0] = np.arange(100)
    assert np.array_equal(trimmed(scores), np.arange(98.0) ** 2)
    assert trimmed_rms(scores) == pytest.approx(np.sqrt(np.mean(np.arange(98.0) ** 2)))
    assert trimmed_rms(scores[5:6]) == 5.0
