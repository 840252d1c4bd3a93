import inspect
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from pointmend import Denoiser, PointCloud, read, write
from pointmend.cli.denoise import Denoise
from pointmend.denoising.options import SamplerOptions

Run = Callable[..., tuple[int, str, str]]


def test_result_is_that_of_the_denoiser_and_attributes_are_kept(
    run: Run, scan: Path, model: str, cloud: PointCloud
) -> None:
    code, out, err = run("denoise", scan, "--model", model, "--steps", 3, "--strength", 0.5)
    assert (code, err) == (0, "")
    assert str(scan.with_name("scan.denoised.ply")) in out
    written = read(scan.with_name("scan.denoised.ply"))
    expected = Denoiser.load(model).denoise(cloud.positions, steps=3, strength=0.5)
    np.testing.assert_array_equal(written.positions, expected.points)
    assert not np.array_equal(written.positions, cloud.positions, equal_nan=True)
    assert list(written.attributes) == list(cloud.attributes)
    for name, values in cloud.attributes.items():
        assert written.attributes[name].dtype == values.dtype
        np.testing.assert_array_equal(written.attributes[name], values)


@pytest.mark.parametrize("suffix", [".xyz", ".npy", ".PLY"])
def test_suffix_of_the_output_chooses_its_format(
    run: Run, scan: Path, model: str, cloud: PointCloud, suffix: str
) -> None:
    target = scan.with_name(f"clean{suffix}")
    assert run("denoise", scan, target, "--model", model, "--steps", 1)[0] == 0
    written = read(target)
    assert len(written) == len(cloud)
    np.testing.assert_array_equal(written.attributes["class"], cloud.attributes["class"])


def test_options_reach_the_sampler(run: Run, scan: Path, model: str, cloud: PointCloud) -> None:
    words = ["--mode", "independent", "--estimator", "variance", "--eta", 1.0, "--seed", 7]
    code, out, _ = run("denoise", scan, "--model", model, *words, "--steps", 2, "--json")
    options = SamplerOptions(mode="independent", estimator="variance")
    denoiser = Denoiser.load(model, options=options)
    expected = denoiser.denoise(cloud.positions, steps=2, eta=1.0, seed=7)
    assert code == 0
    assert json.loads(out)["sigma"] == expected.sigma
    written = read(scan.with_name("scan.denoised.ply"))
    np.testing.assert_array_equal(written.positions, expected.points)


def test_spreading_reaches_the_sampler(run: Run, scan: Path, cloud: PointCloud) -> None:
    code, _, _ = run("denoise", scan, "--spread", "--steps", 2)
    assert code == 0
    expected = Denoiser.load().denoise(cloud.positions, steps=2, spread=True)
    written = read(scan.with_name("scan.denoised.ply"))
    np.testing.assert_array_equal(written.positions, expected.points)


def test_defaults_are_those_of_the_library() -> None:
    library = inspect.signature(Denoiser.denoise).parameters
    shared = [field for field in fields(Denoise) if field.name in library]
    assert {field.name for field in shared} == {
        "steps",
        "eta",
        "sigma",
        "spread",
        "strength",
        "seed",
        "max_displacement",
    }
    for field in shared:
        assert field.default == library[field.name].default
    options = SamplerOptions()
    defaults = {field.name: field.default for field in fields(Denoise)}
    assert (defaults["mode"], defaults["estimator"]) == (options.mode, options.estimator)


def test_json_is_one_object_and_nothing_else(run: Run, scan: Path, model: str) -> None:
    code, out, err = run("denoise", scan, "--model", model, "--steps", 2, "--json")
    facts = json.loads(out)
    assert (code, err) == (0, "")
    assert facts["output"] == str(scan.with_name("scan.denoised.ply"))
    assert (facts["points"], facts["invalid"]) == (300, 1)
    assert facts["sigma_over_spacing"] == pytest.approx(facts["sigma"] / facts["spacing"])
    assert facts["displacement"]["max"] >= facts["displacement"]["mean"] > 0.0
    assert len(facts["schedule"]) == 3
    assert facts["sigma_given"] is False


def test_a_known_noise_level_is_used(run: Run, scan: Path, model: str) -> None:
    words = ("--model", model, "--steps", 1, "--sigma", 0.25, "--json")
    facts = json.loads(run("denoise", scan, *words)[1])
    assert facts["sigma"] == pytest.approx(0.25)
    assert facts["sigma_given"] is True


def test_quiet_says_nothing(run: Run, scan: Path, model: str) -> None:
    assert run("denoise", scan, "--model", model, "--steps", 1, "--quiet") == (0, "", "")


def test_empty_cloud(run: Run, tmp_path: Path, model: str) -> None:
    path = tmp_path / "empty.ply"
    write(PointCloud(np.empty((0, 3))), path)
    code, out, _ = run("denoise", path, "--model", model, "--json")
    assert code == 0
    assert json.loads(out)["points"] == 0
    assert json.loads(out)["sigma_over_spacing"] is None
    assert len(read(tmp_path / "empty.denoised.ply")) == 0


def test_displacement_is_written_on_request(
    run: Run, scan: Path, model: str, cloud: PointCloud
) -> None:
    target = scan.with_name("moved.ply")
    words = ("--model", model, "--steps", 1, "--write-displacement")
    assert run("denoise", scan, target, *words)[0] == 0
    written = read(target)
    moved = np.linalg.norm(written.positions - cloud.positions, axis=1)
    moved[5] = 0.0
    np.testing.assert_allclose(written.attributes["displacement"], moved, rtol=1e-6)

    code, _, err = run("denoise", target, *words)
    assert code == 2
    assert "already has an attribute 'displacement'" in err
    assert not target.with_name("moved.denoised.ply").exists()


def test_existing_file_is_replaced_only_when_told_so(run: Run, scan: Path, model: str) -> None:
    target = scan.with_name("scan.denoised.ply")
    target.write_text("precious")
    code, _, err = run("denoise", scan, "--model", model)
    assert (code, target.read_text()) == (2, "precious")
    assert (
        err == f"pointmend: {target} exists; add --overwrite to replace it, or name another file\n"
    )
    assert run("denoise", scan, "--model", model, "--steps", 1, "--overwrite")[0] == 0
    assert len(read(target)) == 300


def test_input_is_replaced_only_by_its_own_name(run: Run, scan: Path, model: str) -> None:
    before = scan.read_bytes()
    alias = scan.with_name("alias.ply")
    alias.symlink_to(scan)
    assert run("denoise", scan, scan, "--model", model)[0] == 2
    code, _, err = run("denoise", scan, alias, "--model", model, "--overwrite")
    assert code == 2
    assert "is another name of" in err
    assert scan.read_bytes() == before
    assert run("denoise", scan, scan, "--model", model, "--steps", 1, "--overwrite")[0] == 0
    assert scan.read_bytes() != before


def test_a_link_that_leads_nowhere_exists_too(run: Run, scan: Path, model: str) -> None:
    link = scan.with_name("link.ply")
    link.symlink_to(scan.with_name("nowhere.ply"))
    assert run("denoise", scan, link, "--model", model)[0] == 2


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("missing.ply",), "missing.ply: no such file"),
        ((".",), ".: is a folder; name files in it, such as *.laz"),
        (("scan.foo",), "scan.foo: unknown suffix '.foo'; known are"),
        (("scan.ply", "."), ".: is a folder; name a file in it"),
        (("scan.ply", "out.foo"), "out.foo: unknown suffix '.foo'; known are"),
        (("scan.ply", "nowhere/out.ply"), "folder nowhere does not exist"),
        (("broken.ply",), "broken.ply: "),
        (("scan.ply", "--steps", "0"), "steps is 0"),
        (("scan.ply", "--eta", "2"), "eta is 2"),
        (("scan.ply", "--strength", "-1"), "strength is -1"),
        (("scan.ply", "--sigma", "nan"), "sigma is nan"),
        (("scan.ply", "--threads", "0"), "--threads is 0"),
        (("scan.ply", "--device", "nonsense"), "unknown device 'nonsense'"),
        (("scan.ply", "--device", "meta"), "device 'meta'"),
        (("scan.ply", "--model", "nonsense"), "no model named 'nonsense'"),
        (("scan.ply", "--model", "nonsense.safetensors"), "cannot read the model"),
        (("scan.ply", "--model", "scan.json"), "is not a pointmend model"),
    ],
)
def test_what_a_user_can_put_right_is_one_line(
    run: Run,
    scan: Path,
    model: str,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    part: str,
) -> None:
    monkeypatch.chdir(scan.parent)
    Path("broken.ply").write_bytes(b"ply\nformat binary_little_endian 1.0\nelement vertex 9\n")
    Path("scan.json").write_text("{}")
    before = sorted(Path().iterdir())
    code, out, err = run("denoise", *(() if "--model" in words else ("--model", model)), *words)
    assert (code, out) == (2, "")
    assert err.startswith("pointmend: ")
    assert err.count("\n") == 1
    assert part in err
    assert sorted(Path().iterdir()) == before


def test_interrupted_run_leaves_nothing_behind(
    run: Run, scan: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = sorted(scan.parent.iterdir())
    monkeypatch.setattr(Denoiser, "run", stop)
    code, out, err = run("denoise", scan, "--model", model)
    assert (code, out, err) == (130, "", "pointmend: interrupted\n")
    assert sorted(scan.parent.iterdir()) == before


def test_several_inputs_go_to_a_folder_and_one_bad_one_does_not_stop_the_others(
    run: Run, scan: Path, model: str, cloud: PointCloud
) -> None:
    folder = scan.parent / "clean"
    folder.mkdir()
    write(cloud, scan.with_name("second.ply"))
    scan.with_name("bad.ply").write_bytes(b"ply\n")
    words = ("--out", folder, "--model", model, "--steps", 1, "--json")
    code, out, err = run("denoise", str(scan.parent / "*.ply"), *words)
    assert code == 2
    assert [Path(facts["output"]).name for facts in json.loads(out)] == ["scan.ply", "second.ply"]
    lines = err.splitlines()
    assert lines[0].startswith(f"pointmend: {scan.parent / 'bad.ply'}: ")
    assert lines[1:] == ["pointmend: 1 of 3 files failed"]
    assert len(read(folder / "scan.ply")) == len(read(folder / "second.ply")) == 300


def test_outliers_are_marked_or_dropped(
    run: Run, scan: Path, model: str, cloud: PointCloud
) -> None:
    strays = cloud.positions.copy()
    strays[9] = 30.0
    write(cloud.with_positions(strays), scan)
    words = ("--model", model, "--steps", 1, "--overwrite")
    facts = json.loads(run("denoise", scan, *words, "--flag-outliers", "--json")[1])
    written = read(facts["output"])
    assert written.attributes["outlier"][9]
    assert written.attributes["outlier"].sum() == facts["outliers"] >= 1
    out = run("denoise", scan, *words, "--drop-outliers", "--outlier-factor", 10)[1]
    assert "outliers   1, left out" in out
    assert len(read(facts["output"])) == 299


def test_clean_clouds_are_left_alone_and_it_is_said(run: Run, tmp_path: Path) -> None:
    grid = np.stack(np.meshgrid(np.arange(30.0), np.arange(30.0), [0.0]), axis=-1).reshape(-1, 3)
    path = tmp_path / "flat.xyz"
    write(PointCloud(grid), path)
    out = run("denoise", path)[1]
    assert "nothing to gain, all points are where they were" in out
    np.testing.assert_array_equal(read(tmp_path / "flat.denoised.xyz").positions, grid)
    assert "nothing to gain" in run("inspect", path)[1]


def test_large_runs_and_limited_ones_are_announced(run: Run, scan: Path, model: str) -> None:
    words = ("--model", model, "--steps", 1, "--max-memory", "2G", "--overwrite")
    err = run("denoise", scan, *words)[2]
    assert err.startswith("scan.ply: 300 points in 1 tile, about ")
    assert "MB of memory and" in err
    assert run("denoise", scan, *words, "--quiet")[2] == ""
    code, _, err = run("denoise", scan, "--model", model, "--max-memory", "10M", "--overwrite")
    assert code == 2
    assert "of memory at least" in err


def test_what_gets_lost_is_said(run: Run, scan: Path, model: str) -> None:
    out = run("denoise", scan, scan.with_name("a.off"), "--model", model, "--steps", 1)[1]
    assert "not kept" in out
    assert "'intensity'" in out
