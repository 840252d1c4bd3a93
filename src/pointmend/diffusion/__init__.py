"""Diffusion: the paper's maths in pure float64 functions; no learning, no files."""
