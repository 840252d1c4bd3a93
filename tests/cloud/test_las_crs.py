"""Room `cloud`: the coordinate system of a LAS file, in words."""

from __future__ import annotations

import struct
from pathlib import Path

import laspy  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud.files import read, write
from pointmend.cloud.las_crs import crs
from pointmend.cloud.point_cloud import PointCloud

OREGON = """COMPD_CS["NAD83 / Oregon + heights",
  PROJCS["NAD83 / Oregon",GEOGCS["NAD83",AUTHORITY["EPSG","4152"]],
    UNIT["metre",1],AUTHORITY["EPSG","2991"]],
  VERT_CS["NAVD88",AUTHORITY["EPSG","5703"]]]"""
UTM = """PROJCRS["WGS 84 / UTM zone 33N",BASEGEOGCRS["WGS 84",ID["EPSG",4326]],
  CONVERSION["UTM zone 33N",ID["EPSG",16033]],ID["EPSG",32633]]"""


def keys(*rows: tuple[int, int, int, int]) -> bytes:
    return struct.pack("<4H", 1, 1, 0, len(rows)) + b"".join(struct.pack("<4H", *r) for r in rows)


def cloud_with(path: Path, records: dict[int, bytes], extended: bool = False) -> PointCloud:
    header = laspy.LasHeader(version="1.4", point_format=6)
    found = [laspy.VLR("LASF_Projection", number, "", data) for number, data in records.items()]
    if not extended:
        header.vlrs.extend(found)
    las_file = laspy.LasData(header)
    las_file.x = las_file.y = las_file.z = np.zeros(1)
    if extended:
        las_file.evlrs = laspy.vlrs.vlrlist.VLRList(found)
    las_file.write(path)
    return read(path)


@pytest.mark.parametrize(
    ("records", "wanted"),
    [
        ({}, None),
        ({2112: UTM.encode()}, "WGS 84 / UTM zone 33N (EPSG:32633)"),
        ({2112: OREGON.encode() + b"\0"}, "NAD83 / Oregon + heights (EPSG:2991+EPSG:5703)"),
        ({2112: b'LOCAL_CS["the ""yard"""]'}, 'the "yard"'),
        ({2112: b'PROJCS("old style",AUTHORITY("EPSG","7"))'}, "old style (EPSG:7)"),
        ({2112: b""}, None),
        ({2112: b"]]]["}, None),
        ({2112: b'"stray"'}, "stray"),
        ({34735: keys((1024, 0, 1, 1), (3072, 0, 1, 25832))}, "EPSG:25832"),
        ({34735: keys((2048, 0, 1, 4326), (3072, 0, 1, 32767))}, "EPSG:4326"),
        (
            {34735: keys((3072, 0, 1, 25832), (3073, 34737, 7, 2)), 34737: b"a|UTM 32|"},
            "UTM 32 (EPSG:25832)",
        ),
        (
            {34735: keys((1026, 34737, 9, 0), (3072, 0, 1, 32767)), 34737: b"my\ncampus|\0"},
            "my campus",
        ),
        ({34735: keys((3072, 0, 1, 32767), (1026, 34737, 9, 999))}, None),
        ({34735: b"\x01\x00"}, None),
        ({2112: b"", 34735: keys((3072, 0, 1, 25832))}, "EPSG:25832"),
        ({34735: keys((3072, 0, 1, 1)), 2112: UTM.encode()}, "WGS 84 / UTM zone 33N (EPSG:32633)"),
    ],
)
@pytest.mark.parametrize("extended", [False, True])
def test_crs(tmp_path: Path, records: dict[int, bytes], wanted: str | None, extended: bool) -> None:
    cloud = cloud_with(tmp_path / "a.las", records, extended)
    assert crs(cloud) == wanted
    write(cloud[[0, 0]], tmp_path / "b.laz")
    assert crs(read(tmp_path / "b.laz")) == wanted


def test_other_clouds_have_none() -> None:
    assert crs(PointCloud(np.zeros((1, 3)))) is None


@given(
    st.binary(max_size=80), st.binary(max_size=40), st.text('AUTHORITY["EPSG",]1()', max_size=40)
)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_damaged_records_never_hurt(tmp_path: Path, a: bytes, b: bytes, text: str) -> None:
    for records in ({34735: a, 34737: b}, {2112: text.encode()}, {2112: a}):
        found = crs(cloud_with(tmp_path / "a.las", records))
        assert found is None or found.isprintable()
