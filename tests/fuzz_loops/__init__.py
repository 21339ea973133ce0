"""Random loop nests for flatten-loops and Triton's fusion, with the simulator as the judge."""
