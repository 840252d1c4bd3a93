"""Room `scans`: from file to file, scans of any size with all that belongs to them."""
