"""Experiments: every table and figure of the paper, on any data that fits."""
