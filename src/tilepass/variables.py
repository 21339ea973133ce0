"""The environment variables by which commands reach the processes of a program.

Loaded when interpreters start: it imports nothing.
"""

PIPELINE = "TILEPASS"
LOAD = "TILEPASS_LOAD"
REMARKS = "TILEPASS_REMARKS"
VALIDATE = "TILEPASS_VALIDATE"
VALIDATE_SHAPES = "TILEPASS_VALIDATE_SHAPES"
SHAPES_SEPARATOR = ";"
ON_FAILURE = "TILEPASS_ON_FAILURE"
DUMP = "TILEPASS_DUMP"
COMPILE_ONLY = "TILEPASS_COMPILE_ONLY"

EMPTY_PIPELINE = "builtin.module()"
"""A pipeline of no passes that counts as set."""
