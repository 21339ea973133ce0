"""A context for passes that run on a module by themselves."""

from __future__ import annotations

from tilepass.core.pass_base import Pass, PassContext, Target
from tilepass.core.remarks import RemarkSink
from tilepass.core.versions import triton_version
from tilepass.ir.engine import location_of

COMPILER = triton_version()


def make_context(a_pass: Pass) -> PassContext:
    """A context for Hopper that prints no remarks."""
    remarks = RemarkSink(a_pass.name, location_of)
    return PassContext(a_pass.name, COMPILER, remarks, Target("cuda", 90))
