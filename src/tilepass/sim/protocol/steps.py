"""The steps of operations while recording.

Within a partition all is in program order: Triton's membar pass puts barriers between its warps.
"""

from __future__ import annotations

from importlib import import_module

from tilepass.sim.protocol.makers import MAKERS, TENSOR, require_finished
from tilepass.sim.protocol.steps_memory import NameOf, allocate
from tilepass.sim.site import OPERATIONS, CannotSimulate, Site
from tilepass.sim.state import Frame, Step, Suspending

# They enter their makers into the table.
for _family in ("async", "dot"):
    import_module(f"tilepass.sim.protocol.steps_{_family}")

_CONTROL = ("scf.", "cf.", "tt.call")
# Tensor operations of these dialects compute values and nothing else.
_VALUE_DIALECTS = ("arith.", "math.", "tt.", "ub.")
_VALUE_OPERATIONS = frozenset(
    ("ttg.convert_layout", "ttg.fp4_to_fp", "ttg.global_scratch_alloc", "llvm.intr.assume",
     "ttng.tensormap_create", "ttng.reinterpret_tensor_descriptor", "ttg.async_commit_group",
     "ttng.tensormap_fenceproxy_acquire")
)  # fmt: skip
# Within a partition, and with one CTA in a cluster, these order nothing that is not in order.
_NOTHING = frozenset(
    ("gpu.barrier", "ttg.barrier", "ttg.local_barrier", "ttng.fence_mbarrier_init_release_cluster",
     "ttng.cluster_barrier", "ttng.cluster_arrive", "ttng.cluster_wait",
     "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents")
)  # fmt: skip


def make_step(site: Site, name_of: NameOf) -> Step:
    """The step of an operation; `name_of` names an allocation. Raises CannotSimulate for one that
    cannot be followed."""
    if site.name == "ttg.local_alloc":
        return allocate(site, name_of)
    if site.name in MAKERS:
        return MAKERS[site.name](site)
    if site.name.startswith(_CONTROL) or _only_scalars(site):
        return _checked(_by_value(site))
    if site.name in _NOTHING:
        return lambda _: None
    known = site.name in OPERATIONS and site.name.startswith(_VALUE_DIALECTS)
    if known or site.name in _VALUE_OPERATIONS:
        return _tensor_step(site)
    raise CannotSimulate("the protocol of this operation is not known")


def _only_scalars(site: Site) -> bool:
    changes_memory = site.name in ("tt.atomic_rmw", "tt.atomic_cas", "tt.store")
    types = (*site.operand_types, *site.result_types)
    return (
        not changes_memory
        and site.name.startswith(("arith.", "math.", "tt.", "ub."))
        and all(each.form == "scalar" for each in types)
        and not len(site.operation.regions)
    )


def _by_value(site: Site) -> Step | Suspending:
    make = OPERATIONS.get(site.name)
    if make is None:
        raise CannotSimulate("it is not known to the simulator")
    return make(site)


def _checked(step: Step | Suspending) -> Step:
    assert not isinstance(step, Suspending), "nothing suspends while recording"
    return step


def _tensor_step(site: Site) -> Step:
    """All results unknown; an operand that a dot is still writing must not be read."""
    results = site.results
    tensors = [
        slot
        for slot, type_ in zip(site.operands, site.operand_types, strict=True)
        if type_.form == "tensor"
    ]
    if site.name == "arith.select" and site.operand_types[0].form == "scalar":
        return _select(site)

    def step(frame: Frame) -> None:
        for slot in tensors:
            require_finished(frame, frame[slot])
        for slot in results:
            frame[slot] = TENSOR

    return step


def _select(site: Site) -> Step:
    """A choice between values by a scalar moves nothing: it becomes a branch."""
    condition, yes, no = site.operands
    result = site.result

    def step(frame: Frame) -> None:
        choice = frame[condition]
        frame[result] = TENSOR if choice is TENSOR else frame[yes if choice else no]

    return step
