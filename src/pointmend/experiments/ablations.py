"""Experiments: Table 3, lambda and the thin plate; what each part of the method is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pointmend.denoising.options import Plan as SamplerPlan
from pointmend.denoising.options import SamplerOptions
from pointmend.errors import InputError
from pointmend.evaluation.noise import add_noise
from pointmend.evaluation.tables import Table
from pointmend.evaluation.testsets import Case
from pointmend.geometry.procedural import thin_plate
from pointmend.geometry.sample_cache import cached_poisson_disk, default_cache, mesh_digest
from pointmend.methods.method import Contestant
from pointmend.methods.registry import contestant, our_contestant
from pointmend.network.weights import load_model
from pointmend.training.config import CONFIGURATIONS, TrainingConfig
from pointmend.training.session import MODEL, Plan, Session
from pointmend.training.trainer import Limits

from .bench import Findings, Workbench
from .grid import measured_rows
from .paper_tables import heads, paper_rows
from .pictures import compare_cases
from .sweeps import sweep

LAMBDAS = (0.0, 0.9, 0.99, 0.999, 1.0)


@dataclass(frozen=True)
class Ablation:
    """
    A network that has to be trained anew.

    Attributes
    ----------
    name : as the paper calls it.
    training, network : what differs from the full configuration.
    options : how its sampler runs.
    """

    name: str
    training: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    options: SamplerOptions = field(default_factory=SamplerOptions)

    def config(self) -> TrainingConfig:
        """The full configuration with the difference applied."""
        full = CONFIGURATIONS["default"]
        return replace(full, network=replace(full.network, **self.network), **self.training)

    @property
    def folder(self) -> str:
        """A name for the file system."""
        return "".join(c if c.isalnum() or c in "-+." else "_" for c in self.name)


FULL = Ablation("Full")
WITHOUT_GRADIENT_FUSION = (
    Ablation("w/o GF", network={"gradient_neighbours": 1}),
    Ablation("w/ GF(const)", network={"gradient_weights": "constant"}),
)
RETRAINED = (
    Ablation(
        "GDM",
        training={"diffusion": "generative"},
        network={"fusion": "initial"},
        options=SamplerOptions(plan="generative"),
    ),
    Ablation("w/ F_T", network={"fusion": "initial"}),
    Ablation("w/ F_t", network={"fusion": "current"}),
    Ablation("w/ F_t+T", network={"fusion": "mean"}),
    *WITHOUT_GRADIENT_FUSION,
)
# Table 3's schedules run on the full network: (name, plan, steps).
SCHEDULES: tuple[tuple[str, SamplerPlan, int], ...] = (
    ("OneStep", "one-step", 1),
    ("FixedSched5", "decaying", 5),
    ("FixedSched30", "decaying", 30),
)


def table3(bench: Workbench) -> Findings:
    """Table 3: schedules on our weights, and networks retrained without one of their parts."""
    shipped = [
        our_contestant(bench.model, options=SamplerOptions(plan=plan), steps=steps, name=name)
        for name, plan, steps in SCHEDULES
    ]
    shipped.append(our_contestant(bench.model, name="Full"))
    test_set = bench.punet()
    findings = Findings("Table 3: ablations")
    shapes = len(test_set.shapes[: bench.grid.shapes])
    names = heads(bench.columns, ("cd", "p2m"))
    found = bench.grid.run(test_set, shipped, bench.columns)
    rows = measured_rows(found, shipped, bench.columns, ("cd", "p2m"))
    rows += paper_rows(3, bench.columns, ("cd", "p2m"), ("PUNet",))
    findings.tables.append(Table("Table 3: schedules", names, rows, [bench.note(shapes)]))

    retrained, missing = trained(bench, (*RETRAINED, replace(FULL, name="Full (same budget)")))
    findings.notes.extend(missing)
    if retrained:
        found = bench.grid.run(test_set, retrained, bench.columns)
        rows = measured_rows(found, retrained, bench.columns, ("cd", "p2m"))
        title = "Table 3: networks retrained at a small, equal budget"
        notes = [budgets(bench, (*RETRAINED, replace(FULL, name="Full (same budget)")))]
        findings.tables.append(Table(title, names, rows, notes))
    return findings


def loss_weight(bench: Workbench) -> Findings:
    """P2M over lambda of the loss (Eq. 9); every value is a network trained anew."""
    ablations = [Ablation(f"lambda = {v:g}", training={"loss_lambda": v}) for v in LAMBDAS]
    networks, missing = trained(bench, ablations)
    if not networks:
        return Findings("Loss weight lambda", notes=missing)
    settings = [v for v, a in zip(LAMBDAS, ablations) if model_path(bench, a).is_file()]
    findings = sweep(
        bench, "Lambda, the loss weight", "lambda", settings, networks, [budgets(bench, ablations)]
    )
    findings.notes.extend(missing)
    return findings


def thin(bench: Workbench) -> Findings:
    """The thin plate: with gradient fusion, without it, and with constant weights."""
    column = bench.columns[0]  # 10k points and 1 % in the paper
    case = thin_case(column.points, column.level, bench.cache or default_cache())
    tried = [contestant("identity"), our_contestant(bench.model)]
    retrained, missing = trained(bench, WITHOUT_GRADIENT_FUSION)
    tried += retrained
    findings = Findings("Thin structures", notes=missing)
    findings.pictures.append(compare_cases(bench, [case], tried, f"Thin plate, {column.name}"))
    return findings


def thin_case(points: int, level: float, cache: Path) -> Case:
    """A thin plate with Gaussian noise."""
    mesh = thin_plate()
    clean = cached_poisson_disk(mesh, points, cache, mesh_digest(mesh))
    noisy = add_noise(clean, "gaussian", level, np.random.default_rng(0))
    return Case("thin plate", points, level, "gaussian", noisy, clean, mesh)


def model_path(bench: Workbench, ablation: Ablation) -> Path:
    """Where an ablation's network is."""
    return bench.out / "networks" / ablation.folder / MODEL


def trained(bench: Workbench, ablations: Sequence[Ablation]) -> tuple[list[Contestant], list[str]]:
    """
    The networks that are there, after training those that are not, when there is a budget.

    Returns
    -------
    The contestants, and a line for every network that is missing.
    """
    found, missing = [], []
    for number, ablation in enumerate(ablations):
        path = model_path(bench, ablation)
        if not path.is_file() and bench.train_minutes > 0:
            bench.grid.tell(number, len(ablations), f"training {ablation.name}")
            train(bench, ablation)
        if path.is_file():
            found.append(our_contestant(path, options=ablation.options, name=ablation.name))
        else:
            missing.append(f"{ablation.name} is not trained: give --train-minutes")
    return found, missing


def train(bench: Workbench, ablation: Ablation) -> None:
    """Train one ablation for the budget, cooling down all the way, and calibrate it."""
    plan = Plan(
        data=bench.data,
        run=model_path(bench, ablation).parent,
        config=ablation.config(),
        limits=Limits(cpu_minutes=bench.train_minutes, cooldown=True),
        cache=bench.cache or default_cache(),
        validate_every=0.0,
    )
    session = Session(plan, lambda line: None)
    session.run()
    session.write_model()


def budgets(bench: Workbench, ablations: Sequence[Ablation]) -> str:
    """One line saying what each network was trained with."""
    parts = []
    for ablation in ablations:
        path = model_path(bench, ablation)
        if path.is_file():
            facts = load_model(path)[1].facts
            parts.append(f"{ablation.name} {facts.get('patches', 0):,} patches")
    if not parts:
        raise InputError("no network has been trained; give each some time with --train-minutes")
    return "Trained here for the same CPU time each, far less than the paper: " + ", ".join(parts)
