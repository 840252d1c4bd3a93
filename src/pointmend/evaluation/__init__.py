"""Evaluation: noise patterns, metrics, benchmark tables, baselines, ablations and figures."""
