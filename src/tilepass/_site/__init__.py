"""A folder that `tilepass run` puts on PYTHONPATH for the sake of the `sitecustomize` in it."""
