"""Tests of the tracer on a machine and of its Python face."""
