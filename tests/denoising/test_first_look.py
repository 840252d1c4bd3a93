"""What a network says of a noisy cloud, put together."""

import numpy as np
import pytest

from pointmend.denoising.first_look import FirstLook


def look(count: int, seed: int = 0) -> FirstLook:
    rng = np.random.default_rng(seed)
    return FirstLook(rng.standard_normal((count, 3)), rng.standard_normal((count, 2)))


def test_rows_and_putting_together_keep_scores_and_readings_of_a_point_together() -> None:
    whole = look(10)
    first = np.arange(10) < 4
    again = FirstLook.together([whole.rows(first), whole.rows(np.arange(4, 10))])
    assert np.array_equal(again.scores, whole.scores)
    assert np.array_equal(again.readings, whole.readings)
    assert np.array_equal(whole.rows(slice(3)).readings, whole.readings[:3])


def test_who_is_sure_has_more_of_a_say() -> None:
    readings = np.log([[0.01, 0.1], [0.04, 0.1]])
    assert FirstLook(np.zeros((2, 3)), readings).noise() == pytest.approx(0.02)
    readings[1, 1] = np.log(0.3)
    expected = np.exp((3.0 * np.log(0.01) + np.log(0.04)) / 4.0)
    assert FirstLook(np.zeros((2, 3)), readings).noise() == pytest.approx(expected)


def test_a_look_without_readings_says_so() -> None:
    assert not FirstLook(np.zeros((5, 3)), np.zeros((5, 0))).reads_noise
    assert look(5).reads_noise
