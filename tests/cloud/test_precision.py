"""Room `cloud`: number types are only used where they hold the numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointmend.cloud.precision import decimals_fit_float32, holds, resolution, stored_type

F4, F8 = np.dtype(np.float32), np.dtype(np.float64)


def naively_held(dtype: np.dtype[Any], value: Any) -> bool:
    """Compare exactly, as fractions; NaN, infinities and minus zero only fit floats."""
    if np.isnan(value) or np.isinf(value):
        return dtype.kind == "f"
    if dtype.kind in "iu":
        whole = Fraction(value.item()).denominator == 1
        minus_zero = value == 0 and np.signbit(value)
        limits = np.iinfo(dtype)
        return whole and not minus_zero and limits.min <= int(value.item()) <= limits.max
    with np.errstate(over="ignore"):
        stored = value.astype(dtype)
    return bool(np.isfinite(stored)) and Fraction(stored.item()) == Fraction(value.item())


@given(
    st.sampled_from(["i1", "u1", "i2", "u4", "i8", "u8", "f4", "f8"]),
    st.one_of(
        st.floats().map(np.float64),
        st.integers(-(2**63), 2**63 - 1).map(np.int64),
        st.integers(0, 2**64 - 1).map(np.uint64),
        st.integers(-300, 70000).map(np.int64),
        st.integers(-300, 70000).map(np.float64),
        st.sampled_from([2.0**63, 2.0**64, -(2.0**63), -0.0]).map(np.float64),
    ),
)
@settings(max_examples=300, deadline=None)
def test_holds_never_promises_too_much(code: str, value: Any) -> None:
    dtype = np.dtype(code)
    said, naive = holds(dtype, np.array([value])), naively_held(dtype, value)
    # Integers beyond 2**53 that happen to be floats are refused: that is safe, not wrong.
    if value.dtype.kind in "iu" and dtype.kind == "f":
        assert naive or not said
    else:
        assert said == naive


def test_holds_small_integers_in_floats() -> None:
    assert holds(F4, np.array([2**24, -(2**24)]))
    assert not holds(F4, np.array([2**24 + 1]))
    assert holds(np.dtype("u1"), np.array([], dtype=np.int64))


def test_float32_stays_where_it_is_as_fine_as_the_file_was() -> None:
    rng = np.random.default_rng(1)
    file = rng.normal(size=(100, 3)).astype(np.float32).astype(np.float64)
    step = resolution(file, F4)
    assert step == float(np.spacing(np.float32(np.abs(file).max())))
    moved = file + rng.normal(scale=1e-3, size=file.shape)
    assert stored_type(moved[:, 0], F4, step) == F4
    assert stored_type(moved[:, 0] + 5e5, F4, step) == F8
    assert stored_type(np.array([np.nan, np.inf, 1.0]), F4, step) == F4
    assert stored_type(np.array([1e300]), F4, step) == F8
    assert stored_type(np.array([1.0]), F8, 0.0) == F8


def test_integers_stay_only_while_whole() -> None:
    i2 = np.dtype(np.int16)
    assert resolution(np.ones((1, 3)), i2) == 0.0
    assert stored_type(np.array([1.0, -32768.0]), i2, 0.0) == i2
    assert stored_type(np.array([1.5]), i2, 0.0) == F8
    assert stored_type(np.array([32768.0]), i2, 0.0) == F8
    assert stored_type(np.array([np.nan]), i2, 0.0) == F8


@pytest.mark.parametrize("style", ["{}", "{:.6f}", "{:.4f}", "{:.9g}", "{:g}", "{:.6e}"])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 50.0, 5e5])
def test_text_printed_from_float32_is_recognised(style: str, scale: float) -> None:
    rng = np.random.default_rng(2)
    numbers = (rng.normal(size=3000) * scale).astype(np.float32)
    printed = [style.format(n if style == "{}" else float(n)) for n in numbers]
    assert decimals_fit_float32(np.array([float(p) for p in printed]))


@pytest.mark.parametrize("style", ["{:.3f}", "{:.2f}", "{!r}"])
def test_text_finer_than_float32_is_recognised(style: str) -> None:
    rng = np.random.default_rng(3)
    numbers = (rng.normal(size=3000) * 100 + 5e5).tolist()
    assert not decimals_fit_float32(np.array([float(style.format(n)) for n in numbers]))


def test_round_and_missing_numbers_fit() -> None:
    assert decimals_fit_float32(np.array([[np.nan, 0.5, np.inf]]))
    assert decimals_fit_float32(np.empty((0, 3)))
