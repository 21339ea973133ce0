"""Kernels whose IR covers the operations and layouts that Triton programs produce.

Test material, not workloads: each kernel is the smallest that reaches what its name says.
`entries.all_entries()` lists them with signatures and targets, `compiling.run_stages` compiles one
for any target without a GPU.
"""
