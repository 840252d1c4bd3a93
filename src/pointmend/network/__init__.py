"""The score network: features (E), fusion (F), gradients (G), their fusion (xi), weights."""
