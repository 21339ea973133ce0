"""Read, run the passes, print: one part of the input after the other."""

from __future__ import annotations

import sys
from pathlib import Path

from tilepass.core.pass_base import CompilerVersion, PassContext
from tilepass.core.registry import instantiate, load_file
from tilepass.core.remarks import Remark, RemarkSink
from tilepass.opt.options import OptOptions


def run(options: OptOptions) -> int:
    """Do what the command line asks for; returns the exit status."""
    from triton._C.libtriton import amd, nvidia
    from triton._C.libtriton import ir as triton_ir

    from tilepass.frontends.triton import bridge
    from tilepass.ir import engine

    for file in options.load:
        load_file(file)
    passes = [instantiate(item) for item in options.pipeline]
    text = sys.stdin.read() if options.file == "-" else Path(str(options.file)).read_text()
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)

    def listen(remark: Remark) -> None:
        if options.remarks.wanted(remark.kind, remark.pass_name):
            print(remark.format(), file=sys.stderr)

    module = bridge.parse_triton(text, context)
    if passes:
        engine_module = bridge.to_engine(module)
        for one in passes:
            sink = RemarkSink(one.name, engine.location_of, (listen,))  # pyright: ignore
            version = CompilerVersion("triton", (3, 6, 0))
            one.run(engine_module, PassContext(one.name, version, sink, options.target))
        module = bridge.from_engine(engine_module, context)
    print(module.str() if options.debug_info else module.str_nodebug())
    return 0
