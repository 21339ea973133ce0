"""`epilogue-warp-specialize` against the plain kernel and against PyTorch's cuBLAS calls."""
