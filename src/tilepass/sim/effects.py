"""The one interface through which operations reach memory and other partitions.

Here everything takes effect at once and in program order: copies complete when they are issued,
dots when they begin. A subclass may delay effects; operations yield `POINT` before each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tilepass.sim.elements import Element
from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.memory import GlobalMemory
from tilepass.sim.shared import Barrier, View

Proxy = Literal["generic", "async"]
"""Through which path shared memory is accessed: threads' loads and stores, or TMA and MMA units."""

Fetch = Callable[[], Any]
Deliver = Callable[[Any], None]


class Effects:
    """Effects that happen at once."""

    def load(self, memory: GlobalMemory, addresses: Any, element: Element) -> Any:
        """Elements of global memory, one for an `int` address, else an array of one dimension."""
        if isinstance(addresses, int):
            return memory.load(addresses, element)
        return memory.gather(addresses, element)

    def store(self, memory: GlobalMemory, addresses: Any, values: Any, element: Element) -> None:
        """Write elements of global memory."""
        if isinstance(addresses, int):
            memory.store(addresses, values, element)
        else:
            memory.scatter(addresses, values, element)

    def read(self, view: View, proxy: Proxy) -> Any:
        """The values of shared or tensor memory."""
        return view.read()

    def write(self, view: View, value: Any, proxy: Proxy) -> None:
        """Overwrite shared or tensor memory."""
        view.write(value)

    def copy_in(self, fetch: Fetch, view: View, barrier: View | None, size: int) -> None:
        """An asynchronous copy into shared memory; `size` bytes complete at the barrier."""
        self.write(view, fetch(), "async")
        if barrier is not None:
            self.barrier(barrier).complete(size)

    def copy_out(self, view: View, deliver: Deliver) -> None:
        """An asynchronous copy out of shared memory."""
        deliver(self.read(view, "async"))

    def commit(self, barrier: View) -> None:
        """Arrive at a barrier when all asynchronous work so far is done."""
        self.arrive(barrier, 1)

    def group(self, what: str) -> None:
        """Close a group of asynchronous operations."""

    def wait_group(self, what: str, pending: int) -> bool:
        """Whether at most `pending` groups are unfinished."""
        return True

    def fence(self, what: str) -> None:
        """Order earlier accesses before later ones of another kind."""

    def init_barrier(self, view: View, count: int) -> None:
        """Make the memory of `view` a barrier."""
        view.require_alive()
        view.allocation.barriers[view.offset] = Barrier.of(count)

    def drop_barrier(self, view: View) -> None:
        """Make the barrier memory again."""
        self.barrier(view)
        del view.allocation.barriers[view.offset]

    def expect(self, view: View, size: int) -> None:
        """Arrive and expect `size` bytes."""
        self.barrier(view).expect(size)

    def arrive(self, view: View, count: int) -> None:
        """Arrive `count` times."""
        self.barrier(view).arrive(count)

    def passed(self, view: View, parity: int) -> bool:
        """Whether the phase of this parity has ended."""
        return self.barrier(view).passed(parity)

    def barrier(self, view: View) -> Barrier:
        """The barrier in this memory. Raises MemoryMisuse where there is none."""
        view.require_alive()
        found = view.allocation.barriers.get(view.offset)
        if found is None:
            raise MemoryMisuse(f"{view} is used as a barrier but was not initialized")
        return found
