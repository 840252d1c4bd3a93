"""The room of clouds: `PointCloud` and one module per file format."""
