from pathlib import Path

import numpy as np
import pytest

import pointmend
from pointmend import PointCloud
from pointmend.denoising.denoiser import Denoiser


def test_scans_are_denoised_as_from_the_command_line(
    tmp_path: Path, denoiser: Denoiser, cloud: PointCloud
) -> None:
    source, target = tmp_path / "in.laz", tmp_path / "out.ply"
    pointmend.write(cloud, source)
    tally = pointmend.denoise_scan(
        source,
        str(target),
        denoiser=denoiser,
        max_memory="4G",
        write_displacement=True,
        steps=1,
        careful=False,
        outliers=3.0,
    )
    expected = denoiser.denoise(
        pointmend.read(source).positions, steps=1, careful=False, outliers=3.0
    )
    found = pointmend.read(target)
    assert np.array_equal(found.positions, expected.points)
    assert np.array_equal(found.attributes["gps_time"], cloud.attributes["gps_time"])
    assert "displacement" in found.attributes
    assert tally.points == 9000
    with pytest.raises(pointmend.InputError, match="exists; pass overwrite=True"):
        pointmend.denoise_scan(source, target, denoiser=denoiser)
    with pytest.raises(pointmend.InputError, match="unknown setting"):
        pointmend.denoise_scan(source, tmp_path / "a.ply", denoiser=denoiser, colour=3)


def test_conversion(tmp_path: Path, cloud: PointCloud) -> None:
    pointmend.write(cloud, tmp_path / "a.ply")
    assert pointmend.convert(tmp_path / "a.ply", tmp_path / "b.laz") == ()
    assert len(pointmend.read(tmp_path / "b.laz")) == 9000
    with pytest.raises(pointmend.InputError, match="exists"):
        pointmend.convert(tmp_path / "a.ply", tmp_path / "b.laz")
    assert len(pointmend.convert(tmp_path / "a.ply", tmp_path / "b.off")) == 2
