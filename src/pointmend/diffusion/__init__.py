"""The paper's diffusion maths: pure float64 functions, no learning, no files."""
