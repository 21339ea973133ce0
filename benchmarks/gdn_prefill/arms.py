"""The arms of the study: orders for the first, the steady and the last block's two gemms."""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.core.errors import OptionError

# Indices of `NewV = (V - SK) T` and of `O += NewV QK` among the class's 39 gemms, 13 in each of the
# three bodies: the first block, the loop, the last block.
BODIES = ((10, 11), (23, 24), (36, 37))
SCHEMA = "tilepass.gdn-study/1"
DENSE = "dense"
VECTORIZED = "vectorized"
_VECTORIZE = "cute-vectorize-copies"


@dataclass(frozen=True)
class Arm:
    """A variant: its name, and the pipeline that makes it (empty for the dense kernel)."""

    name: str
    pipeline: str


def parse_arm(text: str, mode: str) -> Arm:
    """An arm from `ORDER` for all bodies or `FIRST/LOOP/LAST`; a body may be `NEWV:O2`.

    `vectorized` before it, or alone, vectorizes the copies of the state: `vectorized+auto`.
    `mode` is the pass's: `auto` proves the zeros, `assume` takes them as known. Raises OptionError.
    """
    if text == DENSE:
        return Arm(DENSE, "")
    if text == VECTORIZED:
        return Arm(text, _VECTORIZE)
    if text.startswith(f"{VECTORIZED}+"):
        return Arm(text, f"{_VECTORIZE},{parse_arm(text.partition('+')[2], mode).pipeline}")
    bodies = text.split("/")
    if len(bodies) not in (1, 3):
        raise OptionError(f"arm '{text}': expected ORDER or FIRST/LOOP/LAST")
    known = "" if mode == "auto" else ",tiles=upper-triangular"
    sites = "+".join(str(index) for body in BODIES for index in body)
    restricted = "" if mode == "auto" else f",sites={sites}"
    order = text if len(bodies) == 1 and ":" not in text else _by_site(bodies)
    return Arm(text, f"cute-zero-mma{{mode={mode}{known}{restricted},order={order}}}")


def _by_site(bodies: list[str]) -> str:
    orders: list[str] = []
    for sites, body in zip(BODIES, bodies * 3 if len(bodies) == 1 else bodies, strict=True):
        new_v, _, o2 = body.partition(":")
        orders += [f"{sites[0]}:{new_v}", f"{sites[1]}:{o2 or new_v}"]
    return "+".join(orders)
