"""What limits a matmul at a shape, from its time, the clock it ran at, and its tiles.

Counts without hardware counters: what the tiles ask for is known, so shares of the tensor cores
and rates of the L2 follow from the time. `counters.py` reads the hardware's own, where it may.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.ab.job import Shape

DENSE_BF16_FLOPS = 4096
"""Floating-point operations of an sm_90 SM per clock, 16-bit operands: 989.4 TFLOP/s on 132 SMs at
1830 MHz (NVIDIA H100 architecture white paper and H200 data sheet)."""


@dataclass(frozen=True)
class Tiling:
    """How a persistent matmul cuts up its problem: tile sizes and SMs."""

    block_m: int
    block_n: int
    sms: int


@dataclass(frozen=True)
class Limits:
    """`waves`: tiles by SMs. `balance`: share of the SM time that the last wave leaves used, were
    tiles all there is. `tensor`: share of the tensor cores' peak at the clock that was measured.
    `operand_rate` and `least_rate`: TB/s of A and B tiles brought to the SMs, and of what must
    cross global memory at least."""

    waves: float
    balance: float
    tensor: float
    operand_rate: float
    least_rate: float

    def describe(self) -> str:
        """One line."""
        return (
            f"{self.waves:.2f} waves, balance {self.balance:.3f}, tensor cores "
            f"{self.tensor:.3f} (of what the balance allows {self.tensor / self.balance:.3f}), "
            f"operands {self.operand_rate:.2f} TB/s, global memory {self.least_rate:.2f} TB/s"
        )


def limits(
    shape: Shape, tiling: Tiling, microseconds: float, mhz: float, moved: float, item: int = 2
) -> Limits:
    """Of M x N x K in `microseconds` at an SM clock of `mhz`; `moved` are the bytes that cross
    global memory at least, `item` those of an operand's element."""
    M, N, K = shape
    tiles = -(-M // tiling.block_m) * -(-N // tiling.block_n)
    rounds = -(-tiles // tiling.sms)
    peak = tiling.sms * DENSE_BF16_FLOPS * mhz  # per microsecond
    operands = tiles * (tiling.block_m + tiling.block_n) * K * item
    return Limits(
        waves=tiles / tiling.sms,
        balance=tiles / (rounds * tiling.sms),
        tensor=2.0 * M * N * K / (microseconds * peak),
        operand_rate=operands / microseconds / 1e6,
        least_rate=moved / microseconds / 1e6,
    )
