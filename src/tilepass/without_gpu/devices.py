"""What a program may ask of a GPU, for the architectures that kernels are compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target

_MIB, _GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Device:
    """Published figures of one product of an architecture; `processors` are SMs or compute units.

    `registers` and `threads` are those of one processor, `l2` and `memory` bytes. What a block may
    have of shared memory is in `Target.shared_bytes`.
    """

    name: str
    processors: int
    l2: int
    memory: int
    registers: int = 65536
    threads: int = 2048


# By Triton's name of the architecture, from the vendors' data sheets.
_DEVICES: dict[tuple[str, int | str], Device] = {
    ("cuda", 80): Device("NVIDIA A100-SXM4-80GB", 108, 40 * _MIB, 80 * _GIB),
    ("cuda", 86): Device("NVIDIA RTX A6000", 84, 6 * _MIB, 48 * _GIB, threads=1536),
    ("cuda", 89): Device("NVIDIA L40S", 142, 96 * _MIB, 48 * _GIB, threads=1536),
    ("cuda", 90): Device("NVIDIA H100 80GB HBM3", 132, 50 * _MIB, 80 * _GIB),
    ("cuda", 100): Device("NVIDIA B200", 148, 126 * _MIB, 180 * _GIB),
    ("cuda", 120): Device("NVIDIA GeForce RTX 5090", 170, 96 * _MIB, 32 * _GIB, threads=1536),
    ("hip", "gfx90a"): Device("AMD Instinct MI250X", 110, 8 * _MIB, 64 * _GIB),
    ("hip", "gfx942"): Device("AMD Instinct MI300X", 304, 4 * _MIB, 192 * _GIB),
    ("hip", "gfx950"): Device("AMD Instinct MI355X", 256, 4 * _MIB, 288 * _GIB),
}


def device_of(target: Target) -> Device:
    """A product of the target's architecture, or of the nearest one below it that is known.

    Raises TilepassError where there is none.
    """
    exact = _DEVICES.get((target.backend, target.arch))
    if exact is not None:
        return exact
    if isinstance(target.arch, int):
        below = [
            (arch, device)
            for (backend, arch), device in _DEVICES.items()
            if backend == target.backend and isinstance(arch, int) and arch <= target.arch
        ]
        if below:
            return max(below)[1]
    known = ", ".join(f"{backend}:{arch}" for backend, arch in _DEVICES)
    raise TilepassError(f"no GPU of {target} is known to stand in for: {known}")
