"""Methods: every denoiser we compare with, and ours, behind one interface."""
