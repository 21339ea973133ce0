"""A matmul that can be slowed down by a known amount, to test the timing itself.

`extra=1` makes every tile multiply 1 % more of K: real loads and real products of random data,
which cancel, so that the result stays the same. It is the same binary: K is a run-time argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilepass.core.errors import TilepassError
from tilepass.kernels.persistent_matmul_triton import PersistentConfig, PersistentMatmul
from tilepass.kernels.workload import Inputs, Launch, Shape

if TYPE_CHECKING:
    import torch

PAIR = 128
"""Columns of K that cancel: two steps of 64, the second minus the first."""


@dataclass(frozen=True, kw_only=True)
class InjectedConfig(PersistentConfig):
    """`extra` is the work added, in percent of the K loop's steps; 0 or 1."""

    extra: int = 0


class InjectedMatmul(PersistentMatmul):
    """C = A B^T, with some of K gone through in vain."""

    name = "injected_matmul"
    default_config = InjectedConfig()
    default_shapes = ((4096, 4096, 12800),)

    def make_inputs(
        self,
        shape: Shape,
        seed: int,
        device: str = "cuda",
        config: PersistentConfig | None = None,
    ) -> Inputs:
        """A and B with K + K / 100 columns; `shape` keeps the K that counts.

        Raises TilepassError where 1 % of K is not a multiple of PAIR.
        """
        M, N, K = self.checked_shape(shape)
        if K % (100 * PAIR):
            raise TilepassError(f"{self.name}: K must be a multiple of {100 * PAIR}, not {K}")
        wide = super().make_inputs((M, N, K + K // 100), seed, device, config)
        a, b = wide.tensors["a"], wide.tensors["b"]
        half = PAIR // 2
        for start in range(K, K + K // 100, PAIR):
            a[:, start + half : start + PAIR] = -a[:, start : start + half]
            b[:, start + half : start + PAIR] = b[:, start : start + half]
        return replace(wide, shape=shape)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        """The product over the K that counts."""
        return super().reference(_first_columns(inputs, inputs.shape[2]))

    def prepare(self, inputs: Inputs, config: PersistentConfig) -> Launch:
        """Bind the kernel to K, or to K and the columns that cancel."""
        K = inputs.shape[2]
        extra = config.extra if isinstance(config, InjectedConfig) else 0
        if extra not in (0, 1):
            raise TilepassError(f"{self.name}: extra is 0 or 1 (percent), not {extra}")
        return super().prepare(_first_columns(inputs, K + K * extra // 100), config)


def _first_columns(inputs: Inputs, K: int) -> Inputs:
    M, N, _ = inputs.shape
    tensors = {name: tensor[:, :K] for name, tensor in inputs.tensors.items()}
    return replace(inputs, shape=(M, N, K), tensors=tensors)


WORKLOAD = InjectedMatmul()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
