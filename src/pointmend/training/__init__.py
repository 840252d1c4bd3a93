"""Training: shapes to patches (Alg. 1), the trainer, its checkpoints and its validation."""
