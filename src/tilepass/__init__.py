"""tilepass: compiler passes in Python for Triton IR and CuTe DSL IR."""

__version__ = "0.1.0"
