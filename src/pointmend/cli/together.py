"""Command line: `pointmend denoise --together` and `--cluster`, many files as one cloud."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from pointmend.errors import BatchError, InputError

from .model import at_least_one
from .paths import check_output
from .progress import stage_bar
from .report import print_json, print_table, seconds

if TYPE_CHECKING:
    from pointmend.cluster.crew import Crew
    from pointmend.cluster.plan import Plan
    from pointmend.cluster.run import PartReport

    from .denoise import Denoise


def denoise_together(command: Denoise, pairs: Sequence[tuple[Path, Path]]) -> None:
    """Denoise files as one cloud, going on where an earlier run of the same command stopped."""
    for source, target in pairs:
        check_output(source, target, overwrite=True)
    if command.cluster is not None:
        from pointmend.cluster.dask_crew import check_installed, parse_local

        check_installed()
        parse_local(command.cluster)
    from pointmend.cluster.run import Run
    from pointmend.network.weights import weights_file

    weights = weights_file(command.choice.model)
    run = Run(make_plan(command, pairs, weights))
    for number, (source, target) in enumerate(pairs):
        check_output(source, target, command.overwrite or run.is_written(number))
    nothing_to_do = run.is_finished
    if not command.quiet:
        for path in run.others():
            _say(f"{path} belongs to a run with other inputs or settings; delete it if it is over")
        if not nothing_to_do:
            _say(_preflight(run.plan))
    start = perf_counter()
    try:
        with stage_bar(command.quiet) as tell:
            reports = run.carry_out(weights, lambda: _hire(command), tell)
    except KeyboardInterrupt:
        _say(f"what is finished is kept in {run.work.path}; the same command goes on from there")
        raise
    _tell_results(command, reports, perf_counter() - start, nothing_to_do)
    failures = [report.error for report in reports if report.tally is None]
    if failures:
        raise BatchError(failures, len(reports))


def make_plan(command: Denoise, pairs: Sequence[tuple[Path, Path]], weights: Path) -> Plan:
    """What a command asks for."""
    from pointmend.cluster.plan import Plan, look_at_parts
    from pointmend.scans.budget import memory_from, plan

    settings, memory = command.settings(), memory_from(command.max_memory)
    at_least_one("--threads", command.choice.threads)
    marks = command.marks(settings)
    options = command.options()
    parts = look_at_parts(pairs, marks)
    if memory is not None:
        size = sum(part.seen.size for part in parts)
        budget = plan(sum(part.points for part in parts), size, memory, can_stream=True)
        options = replace(options, tile_points=budget.tile_points)
    digest = hashlib.sha256()
    try:
        for suffix in (".safetensors", ".json"):
            digest.update(weights.with_suffix(suffix).read_bytes())
    except OSError as error:
        raise InputError(f"cannot read the model {weights}: {error.strerror}") from error
    return Plan(
        parts=parts,
        settings=settings,
        options=options,
        marks=marks,
        model=digest.hexdigest(),
        device=command.choice.device,
        threads=_threads(command),
    )


def _threads(command: Denoise) -> int:
    """CPU threads of a worker: one each on a cluster, else all there are."""
    if command.choice.threads is not None:
        return command.choice.threads
    if command.cluster is not None:
        return 1
    import torch

    return torch.get_num_threads()


def _hire(command: Denoise) -> AbstractContextManager[Crew]:
    if command.cluster is None:
        from pointmend.cluster.crew import AloneHere

        return nullcontext(AloneHere())
    from pointmend.cluster.dask_crew import dask_crew
    from pointmend.scans.budget import memory_from

    def show(link: str) -> None:
        if not command.quiet:
            _say(f"dashboard: {link}")

    return dask_crew(command.cluster, memory_from(command.max_memory), show)


def _preflight(plan: Plan) -> str:
    from pointmend.geometry.tiles import tiles_for

    files = f"{len(plan.parts):,} file" + ("s" if len(plan.parts) > 1 else "")
    tiles = tiles_for(plan.points, plan.options.tile_points)
    return f"{files}, {plan.points:,} points in about {tiles:,} tile" + ("s" if tiles > 1 else "")


def _tell_results(
    command: Denoise, reports: Sequence[PartReport], took: float, nothing_to_do: bool
) -> None:
    all_facts = [
        command.facts(report.tally, report.source, report.target, took)
        for report in reports
        if report.tally is not None
    ]
    if command.json:
        print_json(all_facts[0] if len(reports) == 1 and all_facts else all_facts)
    elif command.quiet:
        return
    elif nothing_to_do:
        print(f"nothing to do: {len(reports):,} written before, and nothing has changed since")
    else:
        for facts in all_facts:
            rows = command.summary(facts)
            del rows["time"]
            print_table(rows)
        points = sum(facts["points"] for facts in all_facts)
        print(f"{len(all_facts):,} of {len(reports):,} files, {points:,} points, {seconds(took)}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
