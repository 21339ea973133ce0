"""The mxfp4 number format and how the matmul kernel wants its weights packed.

mxfp4 (OCP Microscaling Formats 1.0): e2m1 codes, one e8m0 scale (a power of two) for 32 codes along
K. A code's value is (-1)^s * {0, .5, 1, 1.5, 2, 3, 4, 6}[em]; a scale byte b means 2^(b - 127).

Packed weights. A thread of a warp holds, of the register A operand of wgmma m64k16 (PTX ISA,
matrix fragments), the elements k = 2t, 2t+1, 2t+8, 2t+9 of a row, t = lane % 4: over 32 columns
these are 8 codes, one 32-bit word. The words of a row are stored t-major, so that a thread's words
lie side by side and shared memory is read 16 bytes at a time, straight into the fragment.

A word holds 4 pairs of codes, pair i = 2h + q (k = 16h + 8q + 2t + {0, 1}) with its first code in
the low half and its second in the high half. In each half the pairs take these bits:

    pair 0: s 15, em 8..6     pair 1: s 12, em 5..3     pair 2: s 9, em 2..0
    pair 3: s 14, e1 13, e0 m 11..10

so that pairs 0..2 are (word << 3i) & 0x81C081C0 and pair 3 needs three shifts. What comes out are
two bf16 with the code's sign in place, its e in the exponent and its m in the fraction: the value
times 2^-126, a subnormal for 0.5. One bf16x2 multiplication by 2^(b - 127 + 126 - 64) applies the
scale and removes that bias, but for 2^-64 that the fp32 accumulator gets back at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilepass.core.errors import TilepassError
from tilepass.kernels._tensors import ceil_div

if TYPE_CHECKING:
    import torch

GROUP = 32
"""Codes that share a scale."""
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
SCALE_SHIFT = 62
"""Exponent field of the bf16 factor 2^(b - 65) for a scale byte b: b - 65 + 127."""
MIN_SCALE, MAX_SCALE = 66, 192
"""Scale bytes whose products are normal bf16 numbers or zero, and whose factors exist."""


def code_values(codes: torch.Tensor) -> torch.Tensor:
    """fp32 values of e2m1 codes (uint8, 0..15), without the scale."""
    import torch

    table = torch.tensor([*VALUES, *(-v for v in VALUES)], device=codes.device)
    return table[codes.long()]


def dequantize(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """[N, K] codes and [N, K/32] scale bytes as fp32 [N, K]."""
    import torch

    rows, depth = codes.shape
    factors = torch.exp2(scales.float() - 127.0)[..., None]
    return (code_values(codes).view(rows, depth // GROUP, GROUP) * factors).view(rows, depth)


def pack_codes(codes: torch.Tensor, block_n: int, block_k: int) -> torch.Tensor:
    """[N, K] codes as int32 [k_tiles * padded_n, block_k / 8]: tile after tile along K, the rows
    of each padded with zeros to a multiple of `block_n`. K is a multiple of 32; an empty K gives
    one tile of zeros."""
    import torch

    padded = padded_tiles(codes, block_n, block_k)
    k_tiles, rows, _ = padded.shape
    words = torch.empty(k_tiles, rows, block_k // 8, dtype=torch.int32, device=codes.device)
    for tile in range(k_tiles):
        # n, j, h, q, t, half -> n, t, j, h, q, half: one word for each (n, t, j)
        parts = padded[tile].view(rows, block_k // GROUP, 2, 2, 4, 2).permute(0, 4, 1, 2, 3, 5)
        halves = [_half_word(parts[..., half].flatten(3)) for half in (0, 1)]
        words[tile] = _as_int32(halves[0] | halves[1] << 16).reshape(rows, -1)
    return words.view(k_tiles * rows, block_k // 8)


def unpack_codes(words: torch.Tensor, rows: int, block_k: int) -> torch.Tensor:
    """The inverse of `pack_codes`: uint8 codes [rows, k_tiles * block_k], padding included."""
    import torch

    groups = block_k // GROUP
    packed = words.long().view(-1, rows, 4, groups)
    halves = [packed & 0xFFFF, packed >> 16 & 0xFFFF]
    pairs = [[_code_of_pair(half, pair) for half in halves] for pair in range(4)]
    # k_tile, n, t, j, h, q, half -> n, k_tile, j, h, q, t, half
    stacked = torch.stack([torch.stack(pair, -1) for pair in pairs], -2)
    stacked = stacked.view(-1, rows, 4, groups, 2, 2, 2).permute(1, 0, 3, 4, 5, 2, 6)
    return stacked.reshape(rows, -1).to(torch.uint8)


def pack_scales(scales: torch.Tensor, block_n: int, block_k: int) -> torch.Tensor:
    """[N, K/32] scale bytes as int32 [k_tiles * padded_n, max(1, block_k / 128)].

    A word holds the exponent fields of 4 factors; for block_k = 64, which has only 2 groups, it
    holds the 2 factors as bf16. Raises TilepassError for a scale outside MIN_SCALE..MAX_SCALE.
    """
    if scales.numel() and not (int(scales.min()) >= MIN_SCALE and int(scales.max()) <= MAX_SCALE):
        raise TilepassError(
            f"mxfp4 scale bytes are {int(scales.min())} to {int(scales.max())}; "
            f"this kernel's products are exact from {MIN_SCALE} to {MAX_SCALE}"
        )
    fields = padded_tiles(scales, block_n, block_k // GROUP, fill=127).long() + SCALE_SHIFT
    if block_k == 64:
        words = (fields[..., 0] << 7 | fields[..., 1] << 23)[..., None]
    else:
        four = fields.view(*fields.shape[:2], -1, 4)
        words = four[..., 0] | four[..., 1] << 8 | four[..., 2] << 16 | four[..., 3] << 24
    return _as_int32(words).view(-1, words.shape[-1])


def padded_tiles(values: torch.Tensor, block_n: int, columns: int, fill: int = 0) -> torch.Tensor:
    """[N, width] as [k_tiles, padded_n, columns], padded with `fill`; at least one tile."""
    import torch

    rows, width = values.shape
    k_tiles = max(ceil_div(width, columns), 1)
    padded_n = ceil_div(rows, block_n) * block_n
    whole = torch.full(
        (padded_n, k_tiles * columns), fill, dtype=values.dtype, device=values.device
    )
    whole[:rows, :width] = values
    return whole.view(padded_n, k_tiles, columns).transpose(0, 1).contiguous()


def _half_word(pairs: torch.Tensor) -> torch.Tensor:
    """16 bits of 4 codes, one of each pair, given along the last dimension."""
    sign, em = (pairs >> 3).long(), (pairs & 7).long()
    half = sign[..., 3] << 14 | em[..., 3] >> 2 << 13 | (em[..., 3] & 3) << 10
    for pair in range(3):
        half |= (sign[..., pair] << 15 | em[..., pair] << 6) >> 3 * pair
    return half


def _code_of_pair(half: torch.Tensor, pair: int) -> torch.Tensor:
    if pair == 3:
        return (half >> 14 & 1) << 3 | (half >> 13 & 1) << 2 | half >> 10 & 3
    return (half >> 15 - 3 * pair & 1) << 3 | half >> 6 - 3 * pair & 7


def _as_int32(words: torch.Tensor) -> torch.Tensor:
    """int64 holding 32 bits as int32 of the same bits."""
    import torch

    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)
