"""Benchmarks: one module per area in `bench.areas`, run by `make bench` (all) or `make bench-AREA` (one)."""
