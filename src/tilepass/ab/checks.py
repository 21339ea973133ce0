"""What has to hold before a time means anything: right outputs, different binaries, equal names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tilepass.ab.events import KernelFact
from tilepass.kernels.workload import Tolerance, mismatch

if TYPE_CHECKING:
    import torch

    Tensors = tuple[torch.Tensor, ...]


def poison(outputs: Tensors) -> None:
    """Overwrite outputs, so that an element which a launch leaves out shows.

    NaN where the type has one, else the lowest value.
    """
    import torch

    for output in outputs:
        if output.dtype.is_floating_point or output.dtype.is_complex:
            output.fill_(float("nan"))
        elif output.dtype is torch.bool:
            output.fill_(True)
        else:
            output.fill_(torch.iinfo(output.dtype).min)


def wrong_outputs(outputs: Tensors, expected: Tensors, tolerance: Tolerance) -> str | None:
    """What is wrong with the outputs, or None where they agree with the reference."""
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, but the reference gives {len(expected)}"
    for index, (output, want) in enumerate(zip(outputs, expected, strict=True)):
        if (problem := mismatch(output, want, tolerance)) is not None:
            return f"output {index}: {problem}"
    return None


def library_tolerance(tolerance: Tolerance) -> Tolerance:
    """What a library's function may be off: it may round between the steps of an epilogue, and
    approximate functions (tanh.approx is right to 2^-11). It is compared with, not tested."""
    return Tolerance(4 * tolerance.relative, 4 * tolerance.absolute + 2.0**-7)


def equal_bits(outputs: Tensors, others: Tensors) -> bool:
    """Whether two sets of outputs agree bit by bit (a NaN equals itself)."""
    import torch

    return all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
        for a, b in zip(outputs, others, strict=True)
    )


def same_kernels(
    kernels: Mapping[int, tuple[KernelFact, ...]], settings: Mapping[int, str], force: bool = False
) -> dict[int, int]:
    """For each arm, the first arm that launches the same binaries with the same settings.

    An arm that is its own entry differs from all before it. With `force` every arm is its own.
    """
    if force:
        return {arm: arm for arm in kernels}
    first: dict[tuple[tuple[str, ...], str], int] = {}
    return {
        arm: first.setdefault((tuple(k.code_hash for k in kernels[arm]), settings[arm]), arm)
        for arm in sorted(kernels)
    }


def different_names(kernels: Sequence[tuple[KernelFact, ...]]) -> str | None:
    """What differs between the names of the kernels that the arms launch, or None.

    A kernel's name alone can change what ptxas makes of it (CUTLASS issue 3389: 168 registers
    against 80), so arms of different names compare more than the pass. An arm that launches none
    of Triton's kernels, a library's, has no name to compare.
    """
    names = [tuple(sorted(k.name for k in launched)) for launched in kernels if launched]
    for other in names[1:]:
        if other != names[0]:
            return f"{', '.join(names[0]) or 'none'} against {', '.join(other) or 'none'}"
    return None
