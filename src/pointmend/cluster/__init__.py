"""Room `cluster`: many files as one cloud, tile by tile, here or on the workers of a cluster."""
