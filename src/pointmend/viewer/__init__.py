"""Viewer: a local page on which scans are looked at and cleaned."""
