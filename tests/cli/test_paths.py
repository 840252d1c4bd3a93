from pathlib import Path

import pytest

from pointmend.cli.paths import expand, pair_up
from pointmend.errors import InputError


def test_two_paths_are_input_and_output() -> None:
    assert pair_up([Path("a.ply"), Path("b.xyz")], None, "denoised") == [
        (Path("a.ply"), Path("b.xyz"))
    ]


def test_outputs_stand_beside_their_inputs() -> None:
    assert pair_up([Path("a/b.c.ply")], None, "denoised") == [
        (Path("a/b.c.ply"), Path("a/b.c.denoised.ply"))
    ]
    paths = [Path("a.ply"), Path("b.ply"), Path("c.ply")]
    assert [target for _, target in pair_up(paths, None, "x")] == [
        Path("a.x.ply"),
        Path("b.x.ply"),
        Path("c.x.ply"),
    ]


def test_out_is_a_file_a_folder_or_a_pattern(tmp_path: Path) -> None:
    one, two = [Path("d/a.laz")], [Path("d/a.laz"), Path("d/b.laz")]
    assert pair_up(one, "c.ply", "w") == [(one[0], Path("c.ply"))]
    assert pair_up(two, str(tmp_path), "w")[1] == (two[1], tmp_path / "b.laz")
    assert pair_up(one, "new/", "w") == [(one[0], Path("new/a.laz"))]
    assert pair_up(two, "x/{stem}_clean{suffix}", "w")[0][1] == Path("x/a_clean.laz")
    assert pair_up(two, "{name}.ply", "w")[0][1] == Path("a.laz.ply")


@pytest.mark.parametrize(
    ("paths", "out", "part"),
    [
        (["a.ply", "b.ply"], "c.ply", "for 2 inputs name a folder"),
        (["a.ply", "b.ply"], "{suffix}", "would both be written to"),
        (["x/a.ply", "y/a.ply"], "new/", "would both be written to"),
        (["a.ply"], "{stem}{colour}", "only {stem}, {suffix} and {name}"),
        (["a.ply"], "{stem", "only {stem}, {suffix} and {name}"),
        (["none-of-*.laz"], None, "no file matches"),
    ],
)
def test_what_makes_no_sense_is_refused(paths: list[str], out: str | None, part: str) -> None:
    with pytest.raises(InputError, match=part.replace("{", r"\{")):
        pair_up([Path(path) for path in paths], out, "w")


def test_patterns_are_expanded_in_order(tmp_path: Path) -> None:
    for name in ("b.laz", "a.laz", "[odd].laz"):
        (tmp_path / name).touch()
    found = expand([tmp_path / "?.laz", tmp_path / "[odd].laz", Path("missing.laz")])
    assert [path.name for path in found] == ["a.laz", "b.laz", "[odd].laz", "missing.laz"]
