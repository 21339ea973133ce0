"""Studies behind the published tables: `python -m benchmarks.NAME` in the source folder."""
