"""Room `cloud`: mesh files whose vertices are points; their faces are carried through."""

from __future__ import annotations

from pointmend.cloud import vertices_obj, vertices_off, vertices_stl
from pointmend.cloud.format import Format

FORMATS: tuple[Format, ...] = (vertices_obj.FORMAT, vertices_off.FORMAT, vertices_stl.FORMAT)
