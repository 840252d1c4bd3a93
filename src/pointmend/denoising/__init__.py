"""Alg. 2: estimate the noise, arrange the schedule, iterate over patches, stitch."""
