"""The table of schemes: what each can be built for, what it takes, how it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tilepass.core.pass_base import CompilerVersion
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.options import Options, Plan, SchemeName


@dataclass(frozen=True)
class Scheme:
    """One way to share a nest out among warps.

    `obstacle` says why a nest does not suit it, whatever the numbers. `plans` lists the numbers
    that suit the options, best first. `shared_bytes` is the shared memory that a plan takes,
    `build` rewrites the nest; both work from the description and the plan alone.
    """

    name: SchemeName
    obstacle: Callable[[PersistentNest], Refusal | None]
    plans: Callable[[PersistentNest, Options], Iterator[Plan]]
    shared_bytes: Callable[[PersistentNest, Plan], int]
    build: Callable[[PersistentNest, Plan, CompilerVersion], None]


SCHEMES: Mapping[str, Scheme] = {}
