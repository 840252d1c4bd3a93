"""Geometry: neighbours, farthest points, patches, frames, planes and meshes; no learning."""
