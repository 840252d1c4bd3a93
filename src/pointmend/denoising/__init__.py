"""Denoising: Algorithm 2: estimate the noise, arrange the schedule, iterate, stitch."""
