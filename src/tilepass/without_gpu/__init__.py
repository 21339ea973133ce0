"""A GPU stood in for: a program's kernels compile as they would on it, and none runs.

`devices` has what a program may ask of the GPU, `driver` takes the place of Triton's driver,
`torch_cuda` that of torch's, and `program` puts both into a process.
"""
