"""Print the IR of a kernel, compiled for a named GPU; needs none.

usage: python -m tilepass.kernels.emit_ir NAME [--shape 8192x8192x512]
           [--set block_m=64,flatten=off] [--target cuda:90] [--stage ttgir]

The stages are those of Triton's compiler: source (TTIR as the front end makes it), ttir, ttgir,
llir, ptx (amdgcn). Without a shape, the kernel's first default shape decides the configuration.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping

from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target
from tilepass.frontends.triton.targets import gpu_target
from tilepass.kernels import get_workload, workload_names
from tilepass.kernels.workload import Shape


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tilepass.kernels.emit_ir", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", help=", ".join(workload_names()))
    parser.add_argument("--shape", help="sizes, x between them")
    parser.add_argument("--set", default="", help="options of the configuration, name=value,...")
    parser.add_argument("--target", default="cuda:90", help="cuda:CAPABILITY or hip:ARCHITECTURE")
    parser.add_argument("--stage", default="ttgir")
    options = parser.parse_args(arguments)
    try:
        print(emit(options.name, options.shape, options.set, options.target, options.stage))
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def emit(name: str, shape: str | None, settings: str, target: str, stage: str) -> str:
    """The text of one stage. Raises TilepassError when an argument does not fit."""
    workload = get_workload(name)
    sizes = parse_shape(shape) if shape else workload.default_shapes[0]
    config = workload.config_from(sizes, parse_settings(settings))
    compiled = workload.compile(config, gpu_target(Target.parse(target, "--target")))
    text = compiled.asm.get(stage)
    if not isinstance(text, str):
        known = ", ".join(key for key, value in compiled.asm.items() if isinstance(value, str))
        raise TilepassError(f"no stage '{stage}' for target '{target}' (stages: {known})")
    return text


def parse_shape(text: str) -> Shape:
    """`8192x8192x512` as a tuple. Raises TilepassError."""
    if not re.fullmatch(r"\d+(x\d+)*", text):
        raise TilepassError(f"shape '{text}' is not of the form 8192x8192x512")
    return tuple(map(int, text.split("x")))


def parse_settings(text: str) -> Mapping[str, str]:
    """`a=1,b=2` as a mapping. Raises TilepassError."""
    settings: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, separator, value = part.partition("=")
        if not separator:
            raise TilepassError(f"option '{part}' is not of the form name=value")
        settings[key] = value
    return settings


if __name__ == "__main__":
    raise SystemExit(main())
