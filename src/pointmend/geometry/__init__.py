"""Geometry without learning: neighbours, farthest points, patches, frames, planes, meshes."""
