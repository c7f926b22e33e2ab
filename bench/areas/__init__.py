"""The areas. Each module has a `TITLE` and a function `measure()` that returns its figures (`bench.figure.Figure`)."""
