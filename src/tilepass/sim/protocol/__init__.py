"""The asynchronous protocol of a kernel: barriers, copies and MMAs that complete at any later time.

Control flow, slots and phases of a kernel do not depend on what its tensors hold. So each partition
runs once, alone and without tensor values, and its accesses and barrier operations are recorded
(`recorder`). What is left is a question about a few fixed sequences, and schedules of them are
explored: at random under a seed (`schedule`), or all that differ (`explore`).
"""
