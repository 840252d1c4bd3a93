"""
What tests of several file formats share: checks of hostile files, and makers of sample files.

Everything is a fixture of session scope that gives a function or a maker. Test modules import the
types from here for mypy alone: pytest runs each of them without a package around it.
"""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from pointmend.cloud.files import read
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

Array = npt.NDArray[Any]
LITTLE = 16 << 20


class LittleMemory(Protocol):
    def __call__(self, limit: int = LITTLE) -> AbstractContextManager[None]: ...


@pytest.fixture(scope="session")
def little_memory() -> LittleMemory:
    """A context in which Python and NumPy may not have more than `limit` bytes at any time."""

    @contextmanager
    def watched(limit: int = LITTLE) -> Iterator[None]:
        tracemalloc.start()
        try:
            yield
            assert tracemalloc.get_traced_memory()[1] < limit
        finally:
            tracemalloc.stop()

    return watched


class Refuse(Protocol):
    def __call__(self, path: Path, content: bytes, message: str, limit: int = LITTLE) -> None: ...


@pytest.fixture(scope="session")
def refuse(little_memory: LittleMemory) -> Refuse:
    """Check that a file of this content is refused in little memory, in one line that names it."""

    def check(path: Path, content: bytes, message: str, limit: int = LITTLE) -> None:
        path.write_bytes(content)
        with little_memory(limit), pytest.raises(FileFormatError, match=message) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400

    return check


class ReadOrRefuse(Protocol):
    def __call__(
        self,
        path: Path,
        content: bytes,
        limit: int = LITTLE,
        reader: Callable[[Path], PointCloud] = read,
    ) -> PointCloud | None: ...


@pytest.fixture(scope="session")
def read_or_refuse(little_memory: LittleMemory) -> ReadOrRefuse:
    """
    Read a file of this content in little memory; gives None if it is refused in one line.

    Nothing but FileFormatError may come out of a file, whatever is in it.
    """

    def check(
        path: Path,
        content: bytes,
        limit: int = LITTLE,
        reader: Callable[[Path], PointCloud] = read,
    ) -> PointCloud | None:
        path.write_bytes(content)
        try:
            with little_memory(limit):
                return reader(path)
        except FileFormatError as error:
            complaint = str(error)
        assert "\n" not in complaint
        return None

    return check


Damage = Callable[[st.DataObject, bytes], bytes]


@pytest.fixture(scope="session")
def damaged() -> Damage:
    """Draw a copy of a file with one to four short edits, of bytes or of what numbers are made."""

    def draw(data: st.DataObject, sample: bytes) -> bytes:
        content = bytearray(sample)
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(content)))
            gone = data.draw(st.integers(0, 3))
            content[at : at + gone] = data.draw(
                st.binary(max_size=3)
                | st.sampled_from([b"9", b"-", b"\n", b" ", b"1e9", b"nan", b"#"])
            )
        return bytes(content)

    return draw


SameClouds = Callable[[PointCloud, PointCloud], bool]


@pytest.fixture(scope="session")
def same_clouds() -> SameClouds:
    """Tell whether two clouds have equal points and equal attributes of the same types."""

    def same(a: PointCloud, b: PointCloud) -> bool:
        return bool(
            np.array_equal(a.positions, b.positions, equal_nan=True)
            and list(a.attributes) == list(b.attributes)
            and all(a.attributes[n].dtype == b.attributes[n].dtype for n in a.attributes)
            and all(
                np.array_equal(a.attributes[n], b.attributes[n], equal_nan=True)
                for n in a.attributes
            )
        )

    return same


WKT = b'PROJCS["made up",AUTHORITY["EPSG","25832"]]\0'


class LasMaker:
    """
    Has laspy write and read LAS and LAZ files.

    Attributes
    ----------
    extras : list
        Descriptions of extra bytes of several kinds.
    """

    def __init__(self) -> None:
        self._laspy: Any = importlib.import_module("laspy")
        extra = self._laspy.ExtraBytesParams
        self.extras = [
            extra(name="height", type="u2", scales=np.array([0.1]), offsets=np.array([2.0])),
            extra(name="normal", type="3f4", description="unit vector"),
            extra(name="pair", type="2i8"),
            extra(name="many", type="4u1"),
            extra(name="double", type="f8", no_data=np.array([-1.0])),
        ]

    def fill(self, las_file: Any, count: int, seed: int = 0, channels: int = 4) -> None:
        """Fill points with random bits, so that no field can hide."""
        rng = np.random.default_rng(seed)
        dtype = las_file.point_format.dtype()
        noise = rng.integers(0, 256, (count, dtype.itemsize), dtype=np.uint8)
        las_file.points = self._laspy.ScaleAwarePointRecord(
            noise.view(dtype)[:, 0].copy(),
            las_file.point_format,
            las_file.header.scales,
            las_file.header.offsets,
        )
        if las_file.point_format.id >= 6:
            las_file.scanner_channel = rng.integers(0, channels, count)

    def file(
        self, path: Path, point_format: int, version: str = "1.4", count: int = 50, **options: Any
    ) -> Any:
        """Have laspy write a file with all the trimmings to `path`."""
        header = self._laspy.LasHeader(version=version, point_format=point_format)
        header.scales, header.offsets = [0.01, 0.001, 0.25], [5e5, 5e6, -100.0]
        header.system_identifier, header.generating_software = "scanner", "by laspy"
        header.file_source_id = 7
        header.global_encoding.gps_time_type = self._laspy.header.GpsTimeType.STANDARD
        header.vlrs.append(self._laspy.VLR("someone", 12, "what it is", b"\x00\xff anything"))
        header.vlrs.append(self._laspy.VLR("LASF_Projection", 2112, "", WKT))
        for extra in options.get("extras", ()):
            header.add_extra_dim(extra)
        las_file = self._laspy.LasData(header)
        with np.errstate(invalid="ignore"):  # laspy looks for the smallest nan
            self.fill(las_file, count, channels=options.get("channels", 4))
            if version == "1.4":
                evlr = self._laspy.VLR("later", 9, "far", b"\x01" * 70000)
                las_file.evlrs = self._laspy.vlrs.vlrlist.VLRList([evlr])
            las_file.write(path)
        return las_file

    def records(self, path: Path) -> Any:
        """Return the records as laspy decodes them."""
        with self._laspy.open(path) as reader:
            return reader.read().points.array


@pytest.fixture(scope="session")
def las_maker() -> LasMaker:
    """Makes LAS and LAZ files with everything in them."""
    return LasMaker()


COUNT = 30
STILL = (1.0, 0.0, 0.0, 0.0)
DOUBLE, SINGLE = ("Float", "double"), ("Float", "single")
MILLIMETRES = ("ScaledInteger", -100_000, 100_000, 0.001, 0.5)


@dataclass
class E57Scan:
    """A scan to be written by libE57 itself: per field its node type and its raw numbers."""

    fields: dict[str, tuple[tuple[Any, ...], Array]]
    rotation: tuple[float, ...] | None = None
    translation: tuple[float, ...] | None = None
    more: dict[str, Any] = field(default_factory=dict)


class E57Maker:
    """
    Writes and reads E57 files with libE57's own calls.

    Attributes
    ----------
    coordinates : dict of dict
        The fields of coordinates of every kind, for 30 points each.
    """

    scan = E57Scan

    def __init__(self) -> None:
        self._lib: Any = importlib.import_module("pye57.libe57")
        self._rng = np.random.default_rng(0)
        self.coordinates = {
            "double": self.cartesian(),
            "single": self.cartesian(SINGLE),
            "scaled": self.cartesian(MILLIMETRES),
            "whole": self.cartesian(("Integer", -50_000, 50_000)),
            "spherical": self.spherical(),
            "spherical, from 0": self.spherical(SINGLE, turn=3.1),
            "spherical, scaled": self.spherical(("ScaledInteger", -4000, 4000, 0.001, 0.0)),
            "both": {**self.cartesian(SINGLE), **self.spherical()},
        }

    def file(self, path: Path, *scans: E57Scan) -> Path:
        """Write an E57 file with libE57's own calls, with a picture, an extension and a table."""
        lib = self._lib
        file = lib.ImageFile(str(path), "w")
        root = file.root()
        file.extensionsAdd("", lib.E57_V1_0_URI)
        file.extensionsAdd("nor", "http://www.libe57.org/E57_NOR_surface_normals.txt")
        file.extensionsAdd("vendor", "http://example.org/vendor")
        described = {
            "formatName": "ASTM E57 3D Imaging Data File",
            "guid": "{old}",
            "versionMajor": 1,
            "versionMinor": 0,
            "coordinateMetadata": 'PROJCS["ETRS89 / UTM zone 32N"]',
            "vendor:project": {"name": "Ä & <B> ]]>", "numbers": [1, 2], "temperature": 20.1},
            "images2D": [{"guid": "{image}", "visualReferenceRepresentation": {}}],
        }
        for name, value in described.items():
            root.set(name, self._node(file, value))
        blob = lib.BlobNode(file, 300)
        root["images2D"][0]["visualReferenceRepresentation"].set("jpegImage", blob)
        blob.write(bytearray(range(150)) * 2, 0, 300)
        data = lib.VectorNode(file, True)
        root.set("data3D", data)
        for number, scan in enumerate(scans):
            said: dict[str, Any] = {"guid": f"{{{number}}}", "name": f"scan {number}", **scan.more}
            if scan.translation is not None:
                said["pose"] = {
                    "rotation": dict(zip("wxyz", map(float, scan.rotation or STILL))),
                    "translation": dict(zip("xyz", map(float, scan.translation))),
                }
            made = self._node(file, said)
            data.append(made)
            made.set("pointGroupingSchemes", lib.StructureNode(file))
            groups = {"idElementValue": (("Integer", 0, 9), np.arange(3))}
            self._put_table(file, made["pointGroupingSchemes"], "groups", groups)
            self._put_table(file, made, "points", scan.fields)
        file.close()
        return path

    def _node(self, file: Any, value: Any) -> Any:
        """Return a node for a dict, a list, text, a number, bytes, or a tuple that names a type."""
        lib = self._lib
        match value:
            case dict():
                made = lib.StructureNode(file)
                for name, child in value.items():
                    made.set(name, self._node(file, child))
                return made
            case list():
                made = lib.VectorNode(file, True)
                for child in value:
                    made.append(self._node(file, child))
                return made
            case str():
                return lib.StringNode(file, value)
            case int():
                return lib.IntegerNode(file, value)
            case ("Integer", low, high):
                return lib.IntegerNode(file, low, low, high)
            case ("ScaledInteger", low, high, scale, offset):
                return lib.ScaledIntegerNode(file, low, low, high, scale, offset)
            case ("Float", precision, *limits):
                single = precision == "single"
                return lib.FloatNode(
                    file, 0.0, lib.E57_SINGLE if single else lib.E57_DOUBLE, *limits
                )
            case _:
                return lib.FloatNode(file, float(value))

    def _put_table(self, file: Any, parent: Any, name: str, fields: dict[str, Any]) -> None:
        lib = self._lib
        kinds = self._node(file, {n: kind for n, (kind, _) in fields.items()})
        vector = lib.CompressedVectorNode(file, kinds, lib.VectorNode(file, True))
        parent.set(name, vector)
        buffers, kept = lib.VectorSourceDestBuffer(), []
        count = len(next(iter(fields.values()))[1])
        for path, (kind, values) in fields.items():
            code = {"double": "d", "single": "f"}.get(kind[1], "q")
            kept.append(np.empty(max(count, 1), dtype=code))
            kept[-1][:count] = values
            buffers.append(lib.SourceDestBuffer(file, path, kept[-1], max(count, 1), False, False))
        writer = vector.writer(buffers)
        if count:
            writer.write(count)
        writer.close()

    def records(self, path: Path) -> list[dict[str, list[float]]]:
        """Return what is stored per point, read by libE57's own calls."""
        lib = self._lib
        file = lib.ImageFile(str(path), "r")
        found = []
        for scan in file.root()["data3D"]:
            points = scan["points"]
            count = max(points.childCount(), 1)
            prototype = lib.StructureNode(points.prototype())
            arrays, buffers = {}, lib.VectorSourceDestBuffer()
            for i in range(len(prototype)):
                kind = prototype[i]
                single = isinstance(kind, lib.FloatNode) and kind.precision() == lib.E57_SINGLE
                code = ("f" if single else "d") if isinstance(kind, lib.FloatNode) else "q"
                name = kind.elementName()
                arrays[name] = np.empty(count, dtype=code)
                buffers.append(lib.SourceDestBuffer(file, name, arrays[name], count, False, False))
            if points.childCount():
                points.reader(buffers).read()
            found.append({n: v[: points.childCount()].tolist() for n, v in arrays.items()})
        file.close()
        return found

    def cartesian(self, kind: tuple[Any, ...] = DOUBLE, count: int = COUNT) -> dict[str, Any]:
        if kind[0] == "Float":
            values = self._rng.normal(scale=20, size=(3, count))
        else:
            values = self._rng.integers(-50_000, 50_000, (3, count)).astype(np.float64)
        return {f"cartesian{axis}": (kind, v) for axis, v in zip("XYZ", values)}

    def spherical(self, kind: tuple[Any, ...] = DOUBLE, turn: float = 0.0) -> dict[str, Any]:
        angles = self._rng.uniform(-1.5, 1.5, COUNT)
        azimuth = self._rng.uniform(-3, 3, COUNT) + turn
        if kind[0] != "Float":
            angles, azimuth = np.rint(angles * 1000), np.rint(azimuth * 1000)
        return {
            "sphericalRange": (DOUBLE, self._rng.uniform(1, 30, COUNT)),
            "sphericalAzimuth": (kind, azimuth),
            "sphericalElevation": (kind, angles),
        }

    def extras(self, count: int = COUNT) -> dict[str, Any]:
        rng, int64 = self._rng, (-(2**63), 2**63 - 1)
        return {
            "intensity": (SINGLE, rng.random(count)),
            **{f"color{c}": (("Integer", 0, 255), rng.integers(0, 256, count))
               for c in ("Red", "Green", "Blue")},
            "rowIndex": (("Integer", -5, 70_000), rng.integers(-5, 70_000, count)),
            "columnIndex": (("Integer", 7, 7), np.full(count, 7)),
            "timeStamp": (("ScaledInteger", 0, 2**40, 1e-6, 1e5), rng.integers(0, 2**40, count)),
            "vendor:id": (("Integer", *int64), rng.integers(*int64, count)),
        }  # fmt: skip


@pytest.fixture(scope="session")
def e57_maker() -> E57Maker:
    """Makes E57 files with everything in them."""
    return E57Maker()
