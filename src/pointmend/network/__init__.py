"""Network: features (E), fusion (F), gradients (G), their fusion (xi), and weights."""
