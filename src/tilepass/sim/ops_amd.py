"""`amdg`: buffer accesses, a base pointer with a tensor of offsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilepass.sim.ops_tt_memory import pointee
from tilepass.sim.poison import elementwise
from tilepass.sim.scattered import gather, scatter
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step


def _addresses(size: int) -> Any:
    return elementwise(lambda base, offsets: base + offsets.astype(np.int64) * size)


@operation("amdg.buffer_load")
def buffer_load(site: Site) -> Step:
    """Masked-off elements without a value given for them are zero, as the hardware has it."""
    element, result = pointee(site), site.result
    (base,), (offsets,) = site.groups[:2]
    mask, other = site.optional(3), site.optional(4)
    addresses, shape = _addresses(element.size), site.result_type.shape

    def step(frame: Frame) -> None:
        where = addresses(frame[base], frame[offsets])
        chosen = None if mask is None else frame[mask]
        filler = np.zeros(shape, element.dtype) if other is None else frame[other]
        frame[result] = gather(frame, where, chosen, filler, element)

    return step


@operation("amdg.buffer_store")
def buffer_store(site: Site) -> Step:
    (stored,), (base,), (offsets,) = site.groups[:3]
    mask = site.optional(4)
    element = pointee(site, 1)
    addresses = _addresses(element.size)

    def step(frame: Frame) -> None:
        chosen = None if mask is None else frame[mask]
        scatter(frame, addresses(frame[base], frame[offsets]), frame[stored], chosen, element)

    return step
