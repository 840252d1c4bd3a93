import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pointmend import PointCloud, read

Run = Callable[..., tuple[int, str, str]]


def test_attributes_arrive_and_losses_are_told(run: Run, scan: Path, cloud: PointCloud) -> None:
    code, out, err = run("convert", scan, scan.with_name("a.npz"))
    assert (code, err) == (0, "")
    assert "not kept  nothing" in out
    found = read(scan.with_name("a.npz"))
    np.testing.assert_array_equal(found.attributes["class"], cloud.attributes["class"])
    facts = json.loads(run("convert", scan, scan.with_name("a.off"), "--json")[1])
    assert facts["points"] == 300
    assert len(facts["lost"]) == 3


def test_strict_refuses_to_lose(run: Run, scan: Path) -> None:
    code, out, err = run("convert", scan, scan.with_name("a.off"), "--strict")
    assert (code, out) == (2, "")
    assert "OFF cannot hold" in err
    assert not scan.with_name("a.off").exists()


def test_many_at_once_by_a_pattern(run: Run, scan: Path) -> None:
    scan.with_name("bad.ply").write_bytes(b"no")
    pattern = str(scan.parent / "{stem}.xyz")
    code, out, err = run("convert", scan, scan.with_name("bad.ply"), "--out", pattern, "--quiet")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "pointmend: 1 of 2 files failed"
    assert len(read(scan.with_suffix(".xyz"))) == 300


def test_nothing_is_replaced_unasked(run: Run, scan: Path) -> None:
    before = scan.read_bytes()
    code, _, err = run("convert", scan, scan)
    assert code == 2
    assert "add --overwrite" in err
    assert scan.read_bytes() == before
