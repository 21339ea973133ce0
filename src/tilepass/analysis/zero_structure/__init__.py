"""Which fragments of a CuTe kernel's gemms are zero in every thread, proven from its lowered IR.

A gated delta rule multiplies by triangular matrices, causal attention by a masked diagonal block:
dense gemms, some of whose mma instructions multiply by zeros that the kernel itself has made. This
analysis finds them without knowing layouts: it interprets the lowered module (arith, scf, llvm,
nvvm, vector) for all threads of a block at once.

    clone = copied(traced)            # tilepass.ir.engine
    tag_sites(clone)                  # ties what is lowered to the gemms, by location
    structure = analyse(context.lower(clone))
    for site in structure.sites.values():
        print(site.index, site.b_zero, site.evidence, site.failure)

Domains: integers are intervals by thread (`intervals`, `integers`); data is, by byte and by thread,
"is 0" (`zero_bytes`, `floats`); registers are followed through the program (`private`,
`owners`), shared memory is what any store may leave there at any time (`shared`). Threads that may
run an operation are a mask (`control`); a loop of few constant trips is run trip by trip, another
until nothing changes. Pointers that are not followed, operations and inline assembly that are not
known count as storing anywhere they may reach. An integer that may wrap is any integer. What stops
the analysis, a limit for one, is a `Failure` with a reason, never an exception.

A result is a proof only under its `assumptions`. Out of reach: shared memory that different tensors
take turns in, masks and addresses that depend on data, zeros in the input, wgmma and tcgen05.

`fuzz` tests all this: random kernels, and an interpreter of the same IR on real numbers.
"""

from tilepass.analysis.zero_structure.entry import analyse
from tilepass.analysis.zero_structure.facts import (
    Assumption,
    Failure,
    Limits,
    SiteZeros,
    Step,
    ZeroStructure,
)
from tilepass.analysis.zero_structure.program import gemms_of, tag_sites

__all__ = [
    "Assumption",
    "Failure",
    "Limits",
    "SiteZeros",
    "Step",
    "ZeroStructure",
    "analyse",
    "gemms_of",
    "tag_sites",
]
