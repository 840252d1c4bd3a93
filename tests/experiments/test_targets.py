"""Every experiment, on two tiny shapes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pointmend.experiments import ablations
from pointmend.experiments.bench import Findings, Workbench
from pointmend.experiments.targets import TARGETS, write_findings
from pointmend.training.config import TrainingConfig

TINY_NETWORK: dict[str, Any] = {"channels": 8, "hidden": 8, "layers": 1, "blocks": 1}
TINY_TRAINING: dict[str, Any] = {"patch_points": 120, "mask_points": 16, "batch": 2}


@pytest.fixture(autouse=True)
def tiny_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    full = ablations.Ablation.config

    def tiny(ablation: ablations.Ablation) -> TrainingConfig:
        config = full(ablation)
        kept = {k: v for k, v in TINY_NETWORK.items() if k not in ablation.network}
        return replace(config, network=replace(config.network, **kept), **TINY_TRAINING)

    monkeypatch.setattr(ablations.Ablation, "config", tiny)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(target: str, bench: Workbench) -> Findings:
    return TARGETS[target](replace(bench, train_minutes=0.005))


def test_every_target_leaves_a_report_and_tables(target: str, shared_bench: Workbench) -> None:
    findings = run(target, shared_bench)
    written = write_findings(findings, shared_bench.out, target)
    assert written[0] == shared_bench.out / f"{target}.html"
    assert all(path.stat().st_size > 100 for path in written)
    for table in findings.tables:
        for row in table.rows:
            if row.source == "measured":
                assert set(table.columns) == set(row.values)
    assert findings.tables or findings.pictures
    for picture in findings.pictures:
        assert picture.path.stat().st_size > 1000


def labels(findings: Findings, table: int = 0) -> list[str]:
    return [row.label for row in findings.tables[table].rows if row.source == "measured"]


def test_table_1_shows_the_papers_rows_beside_ours(bench: Workbench) -> None:
    findings = run("table1", replace(bench, methods=("identity", "oracle", "pointmend")))
    assert labels(findings) == ["noisy input", "oracle projection", "pointmend"]
    noisy, oracle, ours = findings.tables[0].rows[:3]
    column = "0.3k 3 % P2M"
    assert oracle.values[column] < ours.values[column] < noisy.values[column]
    assert [row.label for row in findings.tables[0].rows if row.source == "paper"][
        -1
    ] == "the paper"


def test_table_2_has_every_pattern_but_the_trained_one(bench: Workbench) -> None:
    findings = run("table2", replace(bench, methods=("identity",)))
    groups = [row.group for row in findings.tables[0].rows if row.source == "measured"]
    assert groups == ["laplace", "discrete", "anisotropic", "unidirectional", "uniform"]


def test_table_3_runs_schedules_and_retrained_networks(shared_bench: Workbench) -> None:
    findings = run("table3", shared_bench)
    assert labels(findings) == ["OneStep", "FixedSched5", "FixedSched30", "Full"]
    retrained = ["GDM", "w/ F_T", "w/ F_t", "w/ F_t+T", "w/o GF", "w/ GF(const)"]
    assert labels(findings, 1) == [*retrained, "Full (same budget)"]
    assert "patches" in findings.tables[1].notes[0]


def test_without_a_budget_what_is_missing_is_said(bench: Workbench) -> None:
    findings = TARGETS["lambda"](bench)
    assert not findings.tables
    assert "lambda = 0.99 is not trained: give --train-minutes" in findings.notes


def test_a_trained_network_is_not_trained_again(
    shared_bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("thin", shared_bench)

    def never(*arguments: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(ablations, "train", never)
    assert len(run("thin", shared_bench).pictures) == 1


def test_scans_skip_what_cannot_be_read(bench: Workbench) -> None:
    findings = run("scans", bench)
    assert any("broken.ply" in note for note in findings.notes)
    assert {row.group for row in findings.tables[0].rows} == {"street.xyz"}


def test_tables_on_disk_are_what_was_found(shared_bench: Workbench, tmp_path: Path) -> None:
    findings = run("table4", shared_bench)
    write_findings(findings, tmp_path / "out", "table4")
    parsed = json.loads((tmp_path / "out" / "table4.json").read_text())
    measured = [row["method"] for row in parsed["rows"] if row["source"] == "measured"]
    assert measured == ["SBD", "SBD (+our)", "w/o align", "Full"]
