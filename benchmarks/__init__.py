"""Benchmarks: speed as ratios within one run, against a named peer."""
