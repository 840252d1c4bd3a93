"""Room `cloud`: the coordinate system a LAS file says its coordinates are in."""

from __future__ import annotations

import re
import struct

from pointmend.cloud.las_layout import LasLayout
from pointmend.cloud.point_cloud import PointCloud

_WKT = ("LASF_Projection", 2112)
_KEYS = ("LASF_Projection", 34735)
_KEY_TEXTS = ("LASF_Projection", 34737)
_PROJECTED, _GEOGRAPHIC = 3072, 2048  # GeoTIFF keys of EPSG codes
_CITATIONS = (3073, 1026, 2049)  # and of names, the best first
_IN_TEXTS = _KEY_TEXTS[1]
_USER_DEFINED = 32767
_TOKEN = re.compile(r'"((?:[^"]|"")*)"|([A-Za-z_0-9.+-]+)|([\[(])|([\])])')
_COMPOUND = {"COMPD_CS", "COMPOUNDCRS"}


def crs(cloud: PointCloud) -> str | None:
    """
    Return the coordinate system of a cloud from a LAS file, as "name (EPSG:code)".

    Either part is left out if the file does not have it; None if it has neither.
    """
    layout = cloud.metadata.get("las")
    if not isinstance(layout, LasLayout):
        return None
    # A file may have both; new point formats know WKT only, so it is the better kept one.
    return _from_wkt(layout) or _from_keys(layout)


def _data(layout: LasLayout, key: tuple[str, int]) -> bytes:
    records = (*layout.records, *layout.extended_records)
    return next((r.data for r in records if r.key == key), b"")


def _readable(name: str, code: str) -> str | None:
    name = " ".join("".join(s if s.isprintable() else " " for s in name).split())
    return f"{name} ({code})" if name and code else name or code or None


def _from_wkt(layout: LasLayout) -> str | None:
    """Return name and code of the WKT text, which is nested like NAME["text", CHILD[...], ...]."""
    text = _data(layout, _WKT).split(b"\0")[0].decode("utf-8", errors="replace")
    path: list[str] = []
    word = name = root = ""
    words: list[str] = []  # those of the bracket that was opened last
    codes: dict[int, list[str]] = {}
    for quoted, bare, opening, closing in _TOKEN.findall(text):
        if opening:
            root = root or word.upper()
            path.append(word.upper())
            words = []
        elif closing and path:
            if path.pop() in ("AUTHORITY", "ID") and len(words) > 1:
                codes.setdefault(len(path), []).append(f"{words[0]}:{words[1]}")
        else:
            word = bare
            words.append(quoted or bare)
            name = name or quoted
    found = codes.get(1, [])
    if not found and root in _COMPOUND:  # one for the plane and one for heights
        found = codes.get(2, [])
    return _readable(name.replace('""', '"'), "+".join(dict.fromkeys(found)))


def _from_keys(layout: LasLayout) -> str | None:
    """Return name and code of the GeoTIFF keys: rows of key, where it is, length, value."""
    data = _data(layout, _KEYS)
    rows = list(struct.iter_unpack("<4H", data[: len(data) // 8 * 8]))[1:]
    found = {key: (place, length, value) for key, place, length, value in rows}
    texts = _data(layout, _KEY_TEXTS).decode("latin-1")
    code = ""
    for key in (_PROJECTED, _GEOGRAPHIC):
        place, _, value = found.get(key, (0, 0, 0))
        if place == 0 and 0 < value < _USER_DEFINED:
            code = f"EPSG:{value}"
            break
    for key in _CITATIONS:
        place, length, value = found.get(key, (0, 0, 0))
        name = texts[value : value + length].split("|")[0] if place == _IN_TEXTS else ""
        if name.strip(" \0"):
            return _readable(name, code)
    return _readable("", code)
