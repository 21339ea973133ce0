"""mxfp4: packing, and the decoding assembly executed on every pattern it can meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ptx_emulator import bf16_value, lop3, prmt, run_ptx

from tilepass.core.errors import TilepassError
from tilepass.kernels import _mxfp4_format as mxfp4
from tilepass.kernels._mxfp4_parts import DECODE

ASSEMBLY: Any = DECODE  # a tl.constexpr, which has no types


def test_code_values_are_those_of_e2m1() -> None:
    codes = torch.arange(16, dtype=torch.uint8)
    sign, exponent, fraction = codes >> 3, (codes >> 1 & 3).float(), (codes & 1).float()
    normal = torch.exp2(exponent - 1) * (1 + fraction / 2)
    magnitude = torch.where(exponent == 0, fraction / 2, normal)
    expected = torch.where(sign == 1, -magnitude, magnitude)
    assert torch.equal(mxfp4.code_values(codes), expected)


@pytest.mark.parametrize("block_k", [64, 128, 256])
@pytest.mark.parametrize("shape", [(5, 32), (40, 320), (16, 256), (3, 0)])
def test_unpacking_inverts_packing(shape: tuple[int, int], block_k: int) -> None:
    codes = torch.randint(
        0, 16, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    words = mxfp4.pack_codes(codes, 16, block_k)
    rows = -(-shape[0] // 16) * 16
    tiles = max(-(-shape[1] // block_k), 1)
    assert words.shape == (tiles * rows, block_k // 8)
    unpacked = mxfp4.unpack_codes(words, rows, block_k)
    assert torch.equal(unpacked[: shape[0], : shape[1]], codes)
    unpacked[: shape[0], : shape[1]] = 0
    assert not unpacked.any()


def test_words_are_in_fragment_order() -> None:
    """Word 4j' of a row holds, for thread t, k = 32j + {2t, 2t+1, 2t+8, 2t+9, .. + 16}."""
    for k in range(128):
        codes = torch.zeros(1, 128, dtype=torch.uint8)
        codes[0, k] = 7
        words = mxfp4.pack_codes(codes, 16, 128)[0].view(4, 4)
        thread, group = (k % 8) // 2, k // 32
        assert words[thread, group] != 0
        words[thread, group] = 0
        assert not words.any()


def test_decoding_is_exact_for_every_half_word() -> None:
    """All 16^4 ways to fill a half with four codes, at the lowest, a middle and the highest scale;
    the other half holds the complement, so that nothing may leak between them."""
    every = torch.cartesian_prod(*[torch.arange(16)] * 4)
    pairs = torch.stack([every, 15 - every], -1).to(torch.uint8)  # n, pair, half
    codes = torch.zeros(len(every), 32, dtype=torch.uint8)
    columns = torch.tensor([[0, 1], [8, 9], [16, 17], [24, 25]])  # thread 0's, by pair and half
    codes[:, columns] = pairs
    words = mxfp4.pack_codes(codes, 16, 64)[: len(every), 0].numpy().view(np.uint32)
    for scale in (mxfp4.MIN_SCALE, 127, mxfp4.MAX_SCALE):
        decoded = decode(words, scale)
        expected = mxfp4.code_values(pairs).double().numpy() * 2.0 ** (scale - 127)
        assert np.array_equal(decoded, expected.reshape(decoded.shape))


@pytest.mark.parametrize("scale", range(mxfp4.MIN_SCALE, mxfp4.MAX_SCALE + 1))
def test_decoding_is_exact_for_every_scale(scale: int) -> None:
    codes = torch.arange(16, dtype=torch.uint8).repeat(2)[None]
    words = mxfp4.pack_codes(codes, 16, 64)[:1].reshape(4, 2)[:, 0].numpy().view(np.uint32)
    expected = mxfp4.code_values(codes).view(2, 2, 4, 2).permute(2, 0, 1, 3).double().numpy()
    decoded = decode(words, scale).reshape(4, 2, 2, 2)  # thread, h, q, half
    assert np.array_equal(decoded, expected * 2.0 ** (scale - 127))


def decode(words: np.ndarray, scale: int) -> np.ndarray:
    """Words [n] through the kernel's assembly, as float64 [n, 8], 2^64 put back."""
    field = np.uint32(scale + mxfp4.SCALE_SHIFT)
    factor = np.full_like(words, field << np.uint32(7) | field << np.uint32(23))
    values = [bf16_value(v.astype(np.uint32)) for v in run_ptx(ASSEMBLY.value, [words, factor], 8)]
    return np.stack(values, -1).astype(np.float64) * 2.0**64


@pytest.mark.parametrize("block_k", [64, 128, 256])
def test_scales_are_packed_as_exponents(block_k: int) -> None:
    groups = block_k // 32
    scales = torch.arange(100, 100 + 2 * groups, dtype=torch.uint8).view(1, 2 * groups)
    words = mxfp4.pack_scales(scales, 16, block_k).view(2, 16, -1)
    fields = (scales.long() + mxfp4.SCALE_SHIFT).view(2, groups)
    for tile in range(2):
        if block_k == 64:
            value = int(words[tile, 0, 0]) & 0xFFFFFFFF
            found = [(value >> 7) & 0xFF, value >> 23]
        else:
            found = list(words[tile, 0].numpy().view(np.uint8))
        assert found == [int(field) for field in fields[tile]]


@pytest.mark.parametrize("byte", [0, mxfp4.MIN_SCALE - 1, mxfp4.MAX_SCALE + 1, 255])
def test_scales_outside_the_range_are_refused(byte: int) -> None:
    with pytest.raises(TilepassError, match=f"mxfp4 scale bytes are 127 to {byte}|are {byte} to"):
        mxfp4.pack_scales(torch.tensor([[127, byte]], dtype=torch.uint8), 16, 64)


def test_emulator_knows_no_other_instruction() -> None:
    with pytest.raises(NotImplementedError, match=r"xor\.b32"):
        run_ptx("{ xor.b32 $0, $1, $1; }", [np.zeros(1, np.uint32)], 1)


def test_prmt_picks_bytes() -> None:
    a, b = (np.array([x], np.uint32) for x in (0x03020100, 0x07060504))
    assert prmt(a, b, 0x7410)[0] == 0x07040100
    assert prmt(a, b, 0x3232)[0] == 0x03020302


def test_lop3_table() -> None:
    a, b, c = (np.array([x], np.uint32) for x in (0xF0F0, 0xCCCC, 0xAAAA))
    assert lop3(a, b, c, 0xEA)[0] == (0xF0F0 & 0xCCCC) | 0xAAAA
    assert lop3(a, b, c, 0x96)[0] == 0xF0F0 ^ 0xCCCC ^ 0xAAAA
