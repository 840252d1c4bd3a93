"""Algorithm 2 with scores we know, so that its bookkeeping is checked apart from the network."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pointmend.denoising import algorithm
from pointmend.denoising.algorithm import Outcome, Progress, Sampler, Verdict
from pointmend.denoising.amends import Amends
from pointmend.denoising.calibration import Calibration, Curve
from pointmend.denoising.first_look import FirstLook
from pointmend.denoising.noise_fit import NoiseFit
from pointmend.denoising.options import Mode, SamplerOptions
from pointmend.denoising.thinning import Thinning
from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.errors import InputError
from pointmend.geometry.patches import Patches
from pointmend.network.config import DEFAULT, PAPER
from pointmend.network.score import ScoreNetwork

Float64 = NDArray[np.float64]


class TrueScorer:
    """Stands where PatchScorer stands and knows the plane z = 0."""

    calls: list[float] = []  # noqa: RUF012
    told: list[Float64] = []  # noqa: RUF012
    owed: list[Amends | None] = []  # noqa: RUF012

    def __init__(self, network: Any, patches: Patches, *rest: Any) -> None:
        self.patches, self.rest = patches, rest
        TrueScorer.calls, TrueScorer.told, TrueScorer.owed = [], [], []

    def __call__(
        self,
        x: Float64,
        time: float,
        sigma: Float64 | float = 0.0,
        owed: Amends | None = None,
    ) -> Float64:
        assert len(x) == len(self.patches.owner)
        TrueScorer.calls.append(time)
        TrueScorer.told.append(np.broadcast_to(sigma, len(x)))
        TrueScorer.owed.append(owed)
        if len(self.rest) == 3:
            self.rest[2](len(self.patches.members))
        return np.asarray(x * np.array([0.0, 0.0, -1.0]))

    def first_look(self, x: Float64) -> FirstLook:
        return FirstLook(self(x, 1.0), *np.full((2, len(x), 3), 0.03))


@pytest.fixture
def noisy() -> Float64:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2500, 3))
    x[:, 2] = 0.01 * rng.standard_normal(2500)
    return x


@pytest.fixture(autouse=True)
def _true_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithm, "PatchScorer", TrueScorer)


def sampler(**options: Any) -> Sampler:
    calibration = Calibration((Curve(1.0, (1.0,), (2.0,)),))
    network = ScoreNetwork(PAPER)
    return Sampler(network, calibration, SamplerOptions(**options), torch.device("cpu"))


def run(
    what: Sampler,
    x: Float64,
    reports: list[Progress] | None = None,
    sigma: float | None = None,
    shares: Float64 | None = None,
    **more: Any,
) -> Outcome:
    def judge(look: FirstLook) -> Verdict:
        assert look.scores.shape == x.shape
        assert len(look.spreads) == len(look.tails) == len(x)
        if sigma is not None:
            return Verdict(sigma, shares)
        return Verdict(what.read_sigma(look, 0.02), shares)

    settings: dict[str, Any] = {"steps": 5, "eta": 0.0, "judge": judge} | more
    reports = [] if reports is None else reports
    return what.run(x, **settings, rng=np.random.default_rng(0), report=reports.append)


@pytest.mark.parametrize("mode", ["synchronised", "independent"])
def test_points_go_the_share_of_their_way_they_may(noisy: Float64, mode: Mode) -> None:
    shares = np.linspace(0.0, 1.0, len(noisy))
    outcome = run(sampler(mode=mode), noisy, shares=shares)
    assert np.allclose(outcome.positions[:, 2], (1.0 - shares) * noisy[:, 2], atol=1e-12)
    assert np.array_equal(outcome.positions[0], noisy[0])


def test_where_nobody_may_move_no_step_is_computed(noisy: Float64) -> None:
    outcome = run(sampler(), noisy, shares=np.zeros(len(noisy)))
    assert np.array_equal(outcome.positions, noisy)
    assert outcome.positions is not noisy
    assert outcome.times == (0.0,)
    assert TrueScorer.calls == [1.0]


@pytest.mark.parametrize("mode", ["synchronised", "independent"])
@pytest.mark.parametrize("plan", ["aligned", "unaligned", "one-step"])
def test_true_scores_lead_onto_the_surface(noisy: Float64, mode: Mode, plan: str) -> None:
    outcome = run(sampler(mode=mode, plan=plan), noisy)
    assert np.abs(outcome.positions[:, 2]).max() < 1e-12
    assert np.array_equal(outcome.positions[:, :2], noisy[:, :2])


def test_the_three_estimators(noisy: Float64) -> None:
    heights = np.abs(noisy[:, 2])
    rms = np.sqrt(np.mean(heights**2))
    assert run(sampler(estimator="variance"), noisy).sigma == pytest.approx(heights.std())
    assert run(sampler(estimator="rms"), noisy).sigma == pytest.approx(rms)
    assert run(sampler(estimator="calibrated"), noisy).sigma == pytest.approx(2 * rms, rel=0.1)
    assert run(sampler(), noisy, sigma=0.005).sigma == 0.005


def test_noise_is_read_by_the_fit_where_it_is_no_mere_arrangement(noisy: Float64) -> None:
    # A fit that knows nothing but a factor: three times the scores.
    fit = NoiseFit((0.0,) * 9, (1.0,) * 9, (np.log(3.0), *[0.0] * 54))
    scores = Calibration((Curve(1.0, (1.0,), (2.0,)),))
    what = replace(sampler(), calibration=replace(scores, fit=fit))
    assert run(what, noisy).sigma == pytest.approx(0.03, rel=0.1)
    assert run(replace(what, calibration=scores), noisy).sigma == pytest.approx(0.02, rel=0.1)
    literal = replace(what, options=SamplerOptions(estimator="rms"))
    assert run(literal, noisy).sigma == pytest.approx(0.01, rel=0.1)
    quiet = noisy * np.array([1.0, 1.0, 0.25])
    assert run(what, quiet).sigma == pytest.approx(0.005, rel=0.1)


def test_the_times_are_those_of_algorithm_2(noisy: Float64) -> None:
    outcome = run(sampler(bend=1.0), noisy, sigma=float(TRAINING_SCHEDULE.sigma_bar[500]))
    assert list(outcome.times) == [500, 400, 300, 200, 100, 0]
    assert TrueScorer.calls == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])


def test_bent_times_go_most_of_the_way_first(noisy: Float64) -> None:
    outcome = run(sampler(bend=2.0), noisy, sigma=float(TRAINING_SCHEDULE.sigma_bar[500]))
    assert list(outcome.times) == [500, 320, 180, 80, 20, 0]
    assert TrueScorer.calls == pytest.approx([1.0, 0.64, 0.36, 0.16, 0.04])
    with pytest.raises(InputError, match="bend"):
        sampler(bend=0.0)


def test_a_far_outlier_does_not_decide_the_noise_level(noisy: Float64) -> None:
    quiet = run(sampler(), noisy).sigma
    loud = run(sampler(), np.vstack([noisy, [[0.0, 0.0, 1e6]]])).sigma
    assert loud == pytest.approx(quiet, rel=0.05)


def test_no_noise_means_no_step(noisy: Float64) -> None:
    outcome = run(sampler(), noisy, sigma=0.0)
    assert np.array_equal(outcome.positions, noisy)
    assert outcome.times == (0,)


def test_fresh_noise_is_seeded_and_gone_at_the_end(noisy: Float64) -> None:
    first, second = (run(sampler(), noisy, eta=1.0) for _ in range(2))
    assert np.array_equal(first.positions, second.positions)
    assert np.abs(first.positions[:, 2]).max() < 1e-12
    assert not np.array_equal(first.positions[:, :2], noisy[:, :2])


def test_the_fixed_schedule_leaves_what_its_factors_leave(noisy: Float64) -> None:
    outcome = run(sampler(plan="decaying"), noisy, steps=30)
    left = np.prod([1 - 0.2 * 0.95**i for i in range(30)])
    assert np.allclose(outcome.positions[:, 2], left * noisy[:, 2])


def test_ddpm_shrinks_the_cloud_first_and_brings_it_back(noisy: Float64) -> None:
    """With true scores a single generative step lands on the surface, at the old size."""
    outcome = run(sampler(plan="generative"), noisy, steps=1)
    assert np.abs(outcome.positions[:, 2]).max() < 1e-12
    assert np.allclose(outcome.positions[:, :2], noisy[:, :2], rtol=1e-12)
    # The scores of the shrunken cloud are asked for anew, and later steps add fresh noise.
    assert TrueScorer.calls == [1.0, 1.0]
    several = run(sampler(plan="generative"), noisy, steps=3)
    assert np.abs(several.positions[:, 2]).max() < 1e-12
    assert 0.001 < np.std(several.positions[:, 0] - noisy[:, 0]) < 0.02


def test_a_network_that_listens_is_told_the_noise_when_the_estimate_can_be_trusted(
    noisy: Float64,
) -> None:
    deaf = sampler()
    run(deaf, noisy, sigma=0.01)
    assert [set(told) for told in TrueScorer.told] == [{0.0}] * 5
    listening = replace(deaf, network=ScoreNetwork(replace(DEFAULT, told_noise=True)))
    reports: list[Progress] = []
    outcome = run(listening, noisy, reports, sigma=0.01)
    # The noisy cloud is scored twice: without knowing it, and knowing it.
    assert [set(told) for told in TrueScorer.told] == [{0.0}, *[{0.01}] * 5]
    assert TrueScorer.calls[:2] == [1.0, 1.0]
    done = [r.done / r.total for r in reports]
    assert done == sorted(done)
    assert done[-1] == 1.0
    assert np.abs(outcome.positions[:, 2]).max() < 1e-12
    for unsure in (
        replace(listening, calibration=None),
        replace(listening, options=SamplerOptions(estimator="rms")),
    ):
        run(unsure, noisy, sigma=0.01)
        assert [set(told) for told in TrueScorer.told] == [{0.0}] * 5


@pytest.mark.parametrize("mode", ["synchronised", "independent"])
def test_every_point_is_told_the_noise_around_itself(noisy: Float64, mode: Mode) -> None:
    deaf = sampler(mode=mode, patch_points=500)
    listening = replace(deaf, network=ScoreNetwork(replace(DEFAULT, told_noise=True)))
    around = 0.01 + 0.001 * np.abs(noisy[:, 0])
    run(listening, noisy, judge=lambda scores: Verdict(0.01, around=around))
    told = TrueScorer.told[-1]
    patches = listening.construct_patches(noisy)
    expected = around[patches.members].reshape(-1) if mode == "independent" else around
    assert np.array_equal(told, expected)


def test_parts_of_a_cloud_are_told_what_is_left_of_the_noise_around_them(noisy: Float64) -> None:
    listening = replace(sampler(), network=ScoreNetwork(replace(DEFAULT, told_noise=True)))
    around = 0.01 + 0.001 * np.abs(noisy[:, 0])
    thinning = Thinning(noisy, spacing=0.004)
    told: list[Float64] = []

    def watch(self: Sampler, x: Float64, part: Any, sigma: Float64, owed: Amends | None) -> Float64:
        told.append(sigma)
        return np.zeros_like(x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sampler, "_scores_in_parts", watch)
        run(
            listening,
            noisy,
            judge=lambda scores: Verdict(0.01, thinning=thinning, around=around),
        )
    assert len(told) > 1
    assert np.array_equal(told[0], around)
    assert np.all(told[1] < told[0])


@pytest.mark.parametrize("mode", ["synchronised", "independent"])
def test_from_the_second_step_on_points_are_owed_the_way_they_have_come(
    noisy: Float64, mode: Mode
) -> None:
    what, reports = sampler(mode=mode, amends=0.3), list[Progress]()
    run(what, noisy, reports)
    first, second, *_ = TrueScorer.owed[-5:]
    assert first is None
    assert second is not None
    assert second.share == 0.3
    after = next(r.positions for r in reports if r.positions is not None)
    members = what.construct_patches(noisy).members.reshape(-1)
    rows = members if mode == "independent" else np.arange(len(noisy))
    # With true scores every point of a place goes the same way, in all patches.
    assert np.allclose(second.way, (noisy - after)[rows])
    assert np.abs(second.way).max() > 0.0


@pytest.mark.parametrize("options", [{"amends": 0.0}, {"plan": "decaying"}, {"plan": "generative"}])
def test_nothing_is_owed_where_the_paper_owes_nothing(noisy: Float64, options: Any) -> None:
    run(sampler(**options), noisy)
    assert len(TrueScorer.owed) > 1
    assert all(owed is None for owed in TrueScorer.owed)


def test_parts_are_owed_the_way_of_their_own_points(noisy: Float64) -> None:
    owed = Amends(noisy, 0.2)
    part = np.arange(len(noisy)) % 3
    seen: list[Amends | None] = []

    class Watching(TrueScorer):
        def __call__(self, x: Float64, *told: Any) -> Float64:
            seen.append(told[-1])
            return super().__call__(x, *told)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algorithm, "PatchScorer", Watching)
        sampler()._scores_in_parts(noisy, part, np.zeros(len(noisy)), owed)
    for number, of_part in enumerate(seen):
        assert of_part is not None
        assert np.array_equal(of_part.way, noisy[part == number])
    assert len(seen) == 3


@pytest.mark.parametrize("mode", ["synchronised", "independent"])
def test_progress_runs_from_nothing_to_all_and_shows_the_cloud(noisy: Float64, mode: Mode) -> None:
    reports: list[Progress] = []
    outcome = run(sampler(mode=mode), noisy, reports)
    done = [r.done / r.total for r in reports]
    assert done == sorted(done)
    assert done[-1] == 1.0
    shown = [r.positions for r in reports if r.positions is not None]
    assert len(shown) == 5
    assert all(len(cloud) == len(noisy) for cloud in shown)
    assert np.array_equal(shown[-1], outcome.positions)


def test_an_exception_in_the_progress_function_cancels(noisy: Float64) -> None:
    def cancel(state: Progress) -> None:
        raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    what = sampler()
    with pytest.raises(KeyboardInterrupt):
        what.run(noisy, steps=5, eta=0.0, judge=lambda _: Verdict(0.01), rng=rng, report=cancel)


def test_unknown_options_are_errors() -> None:
    with pytest.raises(InputError, match="mode"):
        SamplerOptions(mode=cast(Mode, "both"))
    with pytest.raises(InputError):
        SamplerOptions(overlap=0.5)
    with pytest.raises(InputError, match="amends"):
        SamplerOptions(amends=1.0)
