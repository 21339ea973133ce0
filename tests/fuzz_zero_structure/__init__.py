"""Random kernels and a concrete interpreter, to test the analysis against."""
