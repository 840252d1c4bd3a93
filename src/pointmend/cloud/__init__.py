"""Room `cloud`: `PointCloud` and a few modules per file format."""
