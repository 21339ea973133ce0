"""The asynchronous protocol of a kernel: barriers, copies and MMAs that complete at any later time.

Control flow, slots and phases of a kernel do not depend on what its tensors hold. So each partition
runs once, alone and without tensor values, and its accesses and barrier operations are recorded
(`recorder`, `steps*`). What is left is a question about a few fixed sequences: `machine` executes
them in an order from outside (at random under a seed), and judges by what is certainly
ordered, with vector clocks: an access that nothing orders with another, a wait whose parity two
phases fit, an arrival that may count for two phases. If it finds nothing in one execution, all
executions synchronize alike, and none goes wrong. (The tests compare it with a search through all
orders of small recordings, which counts only what really goes wrong.)

What is modelled, and how:

* A partition (`ttg.warp_specialize`) is one thread: Triton's membar pass and the barriers in its
  lowering keep the warps of a partition together. `gpu.barrier` orders nothing more.
* mbarriers as in the PTX ISA: pending arrivals, bytes outstanding, phase parity; `barrier_expect`
  arrives. What arrives releases, what waits acquires.
* A TMA load writes at any time from its issue until its bytes complete; a TMA store and a wgmma
  read from their issue until they are waited for; `cp.async` writes until its group is waited for.
* Shared memory that threads wrote needs a `fence_async_shared` before a TMA store or wgmma reads
  it, executed on either side of the synchronization; so does what threads of another partition read
  or wrote before a TMA load writes it.
* An allocation is the operation that makes it: one that runs again uses the same memory again.

Not followed (CannotFollow): control flow that depends on tensors or on memory that the kernel
writes, clusters. Not known (UnsupportedOperationsError, which lists them): tensor memory and
`tcgen05`, cluster launch control, and `async_copy_mbarrier_arrive`; the values of kernels with
tensor memory and `tcgen05` are computed all the same.
"""
