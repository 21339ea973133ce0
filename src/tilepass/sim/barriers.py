"""mbarriers: pending arrivals, outstanding bytes, phase."""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.sim.faults import MemoryMisuse


@dataclass
class Barrier:
    """An mbarrier as the PTX ISA describes it: a phase ends when no arrival is pending and no byte
    outstanding; `phase` counts those that ended."""

    count: int
    pending: int
    bytes: int = 0
    phase: int = 0

    @staticmethod
    def of(count: int) -> Barrier:
        """A barrier whose phases need `count` arrivals."""
        return Barrier(count, count)

    def arrive(self, count: int) -> None:
        """Raises MemoryMisuse for more arrivals than are pending."""
        if count > self.pending:
            raise MemoryMisuse(f"{count} arrivals at a barrier with {self.pending} pending")
        self.pending -= count
        self._end_phase()

    def expect(self, size: int) -> None:
        """Wait for `size` bytes more; arrives once, as mbarrier.arrive.expect_tx does."""
        self.bytes += size
        self.arrive(1)

    def complete(self, size: int) -> None:
        """`size` bytes have come."""
        self.bytes -= size
        self._end_phase()

    def passed(self, parity: int) -> bool:
        """Whether the phase of this parity has ended, by mbarrier.test_wait.parity."""
        return self.phase & 1 != parity & 1

    def _end_phase(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count
