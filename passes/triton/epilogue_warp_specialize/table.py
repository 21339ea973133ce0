"""The table of schemes."""

from __future__ import annotations

from collections.abc import Mapping

from tilepass.passes.triton.epilogue_warp_specialize.cooperative import COOPERATIVE
from tilepass.passes.triton.epilogue_warp_specialize.ping_pong import PING_PONG
from tilepass.passes.triton.epilogue_warp_specialize.schemes import Scheme
from tilepass.passes.triton.epilogue_warp_specialize.split_consumer import SPLIT_CONSUMER

SCHEMES: Mapping[str, Scheme] = {
    scheme.name: scheme for scheme in (COOPERATIVE, PING_PONG, SPLIT_CONSUMER)
}
