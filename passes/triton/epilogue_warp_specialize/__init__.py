"""`epilogue-warp-specialize`: share a persistent matmul out among specialized warps.

    match   match, match_main_loop, order          a tile loop -> `PersistentNest` (description)
    plan    schemes, plan, pieces, options         the nest -> a `Plan` of each scheme
            windows, axes, clones                  what of an epilogue is in a window, and how
            cost_model                             which scheme
    build   build, consumers, whole                the nest and the plan -> `ttg.warp_specialize`
            main_loop, epilogue, rings, tiles, partitions

Words:

    tile    what a trip of the tile loop computes: M rows by N columns of the result
    window  a rectangle of the tile, all of it included (`Window`)
    part    what one consumer computes: its window, with so many warps (`Part`)
    piece   a block of columns of a part's window; its epilogue goes through buffers of this size.
            The option `epilogue-subtile` is their number; `late-subtiles` of them wait in registers
            for the next tile
    slice   the operations that a value is computed from (`TileSlice`: with the dimensions of the
            tile that they run along)
    slot    one place of a ring of buffers; full and empty by turns
    group   under `ping-pong`, warps that compute every other tile

An epilogue that is computed as it stands (`whole`) is one window, one part and one piece, in the
source's layouts and with the source's warps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from tilepass.analysis.loop_attributes import lost_by_specializing
from tilepass.analysis.nest_facts import DOTS_OF_ALL_TARGETS, dots_in, nest_facts
from tilepass.core.anchor import Anchor
from tilepass.core.decisions import Choice, Fact
from tilepass.core.pass_base import Forms, Pass, PassContext, Target
from tilepass.core.refusal import Refusal, attempt
from tilepass.core.registry import register
from tilepass.ir.build import remove_attribute
from tilepass.ir.engine import Module, Operation, copied_at
from tilepass.ir.induction import without_counts
from tilepass.ir.loops import Loop, nest_of
from tilepass.ir.walks import function_of, module_integer

from .build import LIMIT, build
from .cost_model import epilogue_work, scheme_choice
from .description import DESCRIPTOR_MAKERS, PersistentNest
from .match import candidate_loops, match
from .options import MOST_REGISTERS, UNLIMITED_REGISTERS, Machine, limits_of
from .options import Options as _Options
from .plan import Plan, late_refusal
from .schemes import SCHEMES, Scheme, choose

_AS_IT_IS = "none"
_Found = TypeVar("_Found")


@register
class EpilogueWarpSpecialize(Pass):
    """Derive a warp-specialized kernel from a plain persistent one, on sm_90.

    Before:
        scf.for %tile = %pid to %tiles step %programs {
          %d = scf.for %k = ... iter_args(%acc = %zero) {
            %a = tt.descriptor_load %a_desc[...]      (and B)
            ttng.warp_group_dot %a_buffer, %b_buffer, %acc
          }
          %c = <epilogue> %d
          tt.descriptor_store %c_desc[...], %c
        }
    After (`scheme=cooperative`):
        %a_ring = ttg.local_alloc                     (and B's; barriers full, empty; a C buffer)
        ttg.warp_specialize(...)
        default {                                     // the warps of the source
          scf.for %tile ... {
            scf.for %k ... iter_args(%acc, %slot, %parity) {
              ttng.wait_barrier %full[%slot]
              ttng.warp_group_dot %a_ring[%slot], %b_ring[%slot], %acc {isAsync}
              ttng.warp_group_dot_wait {pendings = 1}
              ttng.arrive_barrier %empty[%slot before]
            }
            <epilogue>; ttng.async_tma_store_wait; ttg.local_store
            ttng.async_tma_copy_local_to_global
          }
        }
        partition0 num_warps(1) {                     // the producer
          scf.for %tile ... {
            scf.for %k ... iter_args(%slot, %parity) {
              ttng.wait_barrier %empty[%slot]; ttng.barrier_expect %full[%slot]
              ttng.async_tma_copy_global_to_local     (A and B)
            }
          }
        }

    The producer carries slot and parity through both loops, so that it runs ahead over tile
    borders. A residual tile (a descriptor load in the epilogue) has its own ring.
    `ping-pong` has two groups of 4 warps that compute every other tile, one in its main loop while
    the other is in its epilogue. `split-consumer` has two groups of 4 warps that each own half of
    every tile; with `alternate-epilogues` their epilogues take turns. `epilogue-subtile` is the
    number of pieces that the epilogue goes through the C buffers in; where the kernel cuts it into
    blocks of columns itself (reshape, trans, split), each is one piece or several. What is `auto`
    is decided by a cost model and by the target's shared memory and registers.
    Slots that TMA reads or writes begin at multiples of 128 bytes, of a whole swizzle atom where
    they are swizzled; where a piece is smaller, they have gaps between them.

    A descriptor's block may have dimensions of size 1 before those of a matrix; buffers are of the
    matrix. Descriptors that the tile loop makes, the same each time, are made once before it. What
    it counts beside its tiles is computed from their number (`ir.induction`). Early returns before
    the tile loop stay as they are.

    Sound when all that the loops do besides the loads, the dot and the stores is a computation that
    may be repeated in each partition, and when the producer's loads may overtake the stores of
    tiles before: taken to be so where they go through different arguments of the kernel, as
    Triton's pipeliner does; and when the tiles of one program are stored to different places, for
    `ping-pong` and where a tile is loaded from where it is stored. The dots and their order are
    those of the source: the same bits.

    The anchor is the place behind triton-loop-aware-cse; the pass named is one that every target's
    pipeline has, so that others than sm_90 get their remark. A scheme that is asked for and cannot
    be built for a nest with a dot in its inner loop is an error.
    Refused with a remark, or with that error: targets other than sm_90, where Triton's own warp
    specialization is left alone; several CTAs in a cluster; `maxnreg` under 255; kernels that are
    warp-specialized already or hold other loops; tile loops under a condition, with a branch
    before them that does not lead to a return alone or hands values on, or with a branch behind
    them; no dot loop directly in a tile loop; carried tensors; loads of what the tile stores (but
    of the tile from where it is stored), and any behind a TMA store; operations that order memory;
    an inner loop with several dots, dots that are not wgmma, operands that are computed or in
    registers or not loaded by TMA, loads used beside the dot, partial sums of fp8; coordinates and
    bounds that are computed from tensors; descriptors that vary from tile to tile or are made in
    the tile loop from what is loaded or divided there, or of another shape than what is loaded; TMA
    reductions, atomics, TMA stores under a condition; numbers of warps other than 4 or 8
    (`split-consumer` takes 16 too); `ping-pong` where the number of steps varies or the tile loop
    carries scalars that are no count of its trips; epilogues that are not computed tile element by
    tile element or cut into blocks of columns (`split-consumer`; `ping-pong` of 8 warps); plans
    that take more shared memory or registers than there are.
    `auto` leaves alone what the author said something of that the loops of warps do not keep
    (`disable_licm`, `num_stages=1`), and what a trial compilation shows to spill more than the
    source's form, or to run its dots one after the other.
    """

    name = "epilogue-warp-specialize"
    anchor = Anchor.before("tritongpu-fuse-nested-loops")
    touches = DOTS_OF_ALL_TARGETS

    Options = _Options
    options: _Options

    def run(self, module: Module, context: PassContext) -> None:
        """Match, plan, choose, build; each step that stops has told why."""
        if self.options.scheme == "none":
            return
        for loop in candidate_loops(module):
            # Built in a copy, which is what a trial compiles and, if that is for it, takes over.
            copy, operation = copied_at(module, loop.operation)
            nest = self._match(without_counts(Loop(operation)), context)
            plans: Mapping[str, Plan] = self._plans(nest, context) if nest else {}
            facts = self._facts(nest, plans, context) if nest and plans else None
            if not nest or not facts:
                continue
            forms = {_AS_IT_IS: module, **dict.fromkeys(plans, copy)}
            if self._build(nest, plans, facts, forms, context):
                _take_over(module, copy, nest.function, function_of(loop.operation))

    def _match(self, loop: Loop, context: PassContext) -> PersistentNest | None:
        nest = _limited_registers(loop, context) or attempt(
            match, loop, context.target, at=loop.operation
        )
        return self._or_refuse(loop, nest, context)

    def _plans(self, nest: PersistentNest, context: PassContext) -> Mapping[str, Plan]:
        """The best plan within the target's limits of each scheme that may be meant."""
        machine, names = _machine(context), [self.options.scheme]
        if self.options.scheme == "auto":
            names = [*SCHEMES]
        found = {name: self._plan(name, nest, machine) for name in names}
        plans = {name: plan for name, plan in found.items() if isinstance(plan, Plan)}
        for name, refusal in found.items():
            if isinstance(refusal, Plan):
                continue
            if plans:
                context.remarks.analysis(refusal.operation, f"{name} cannot be built: {refusal}")
            else:
                self._refuse(nest.outer, refusal, context)
        return plans

    def _build(
        self,
        nest: PersistentNest,
        plans: Mapping[str, Plan],
        facts: Mapping[str, Fact],
        forms: Mapping[str, Module],
        context: PassContext,
    ) -> bool:
        """Build the scheme that the user forces, or the cost model's unless a trial speaks against
        it; tells whether it is to stay. `forms` are the modules of the schemes, the nest's own but
        for the source's form."""
        place = context.remarks.place
        outer = place(nest.outer.operation)
        made_once = [place(each) for each in nest.invariant if each.name in DESCRIPTOR_MAKERS]

        @cache
        def form(name: str) -> Module:
            if name in plans:
                build(nest, plans[name], _machine(context))
            return forms[name]

        decision = context.decide(
            "warp-specialize",
            outer,
            facts,
            forced=None if self.options.scheme == "auto" else self.options.scheme,
            model=scheme_choice,
            default=Choice(_AS_IT_IS, "no measurement covers these facts"),
            forms=Forms(_AS_IT_IS, form, _loss(nest)),
        )
        plan = plans.get(decision.value)
        if plan is None:
            context.remarks.missed(outer, f"left as it is: {decision}")
            return False
        context.remarks.passed(outer, f"{plan}: {decision}")
        for each in made_once:
            context.remarks.passed(each, "made once, before the tile loop")
        form(decision.value)
        return True

    def _plan(self, name: str, nest: PersistentNest, machine: Machine) -> Plan | Refusal:
        return attempt(self._choose, SCHEMES[name], nest, machine, at=nest.dot)

    def _choose(self, scheme: Scheme, nest: PersistentNest, machine: Machine) -> Plan | Refusal:
        refusal = scheme.obstacle(nest, machine) or late_refusal(nest, self.options)
        return refusal or choose(scheme, nest, self.options, machine.limits)

    def _facts(
        self, nest: PersistentNest, plans: Mapping[str, Plan], context: PassContext
    ) -> Mapping[str, Fact] | None:
        facts = attempt(_facts_of, nest, plans, context, at=nest.outer.operation)
        return self._or_refuse(nest.outer, facts, context)

    def _or_refuse(
        self, loop: Loop, found: _Found | Refusal, context: PassContext
    ) -> _Found | None:
        if not isinstance(found, Refusal):
            return found
        self._refuse(loop, found, context)
        return None

    def _refuse(self, loop: Loop, refusal: Refusal, context: PassContext) -> None:
        scheme = self.options.scheme
        asked_for = scheme != "auto" and _can_be_meant(loop)
        forced = f"scheme={scheme}, but this loop cannot be specialized so" if asked_for else ""
        context.refuse(refusal, "not specialized", forced=forced)


def _take_over(module: Module, copy: Module, function: Operation, original: Operation) -> None:
    """Put a function of a copy of the module in the original's place; the copy is used up."""
    function.move_before(original)
    original.erase()
    warps = "ttg.num-warps"
    if warps in copy.operation.attributes:
        module.operation.attributes[warps] = copy.operation.attributes[warps]
    if LIMIT not in copy.operation.attributes:
        remove_attribute(module.operation, LIMIT)


def _facts_of(
    nest: PersistentNest, plans: Mapping[str, Plan], context: PassContext
) -> Mapping[str, Fact]:
    loops = nest_of(nest.outer)
    assert loops is not None
    facts = dict(nest_facts(loops, context))
    facts["stores"] = "tma" if nest.tma_stores else "pointers"
    facts["epilogue_work"] = epilogue_work(nest)
    facts["tile_load_bytes"] = sum(load.bytes for load in nest.tile_loads)
    for name, plan in plans.items():
        facts[f"stages_{name.replace('-', '_')}"] = plan.stages
    return facts


def _loss(nest: PersistentNest) -> Callable[[str], str]:
    loops = nest_of(nest.outer)
    lost = lost_by_specializing(loops) if loops else []
    reason = f"{', '.join(lost)} would be lost; say scheme=NAME" if lost else ""
    return lambda _: reason


def _limited_registers(loop: Loop, context: PassContext) -> Refusal | None:
    limit = module_integer(loop.operation, LIMIT) or context.compile_options.get("maxnreg")
    if limit is None or int(str(limit)) >= UNLIMITED_REGISTERS:
        return None
    return Refusal(
        loop.operation,
        f"maxnreg = {limit}: consumers take the registers that the producer leaves, up to "
        f"{MOST_REGISTERS} a thread",
        f"compile without maxnreg, or with {UNLIMITED_REGISTERS}",
    )


def _machine(context: PassContext) -> Machine:
    """The matcher has seen to it that the target is known."""
    target = context.target or Target("cuda", 90)
    limits = limits_of(target)
    assert limits is not None
    return Machine(context.compiler.version, limits)


def _can_be_meant(loop: Loop) -> bool:
    """Whether a user who forces a scheme may mean this loop: one with the dot in an inner loop."""
    return any(dots_in(inner) for inner in loop.inner)
