"""Limits that several rooms keep to."""

MAX_CALLS_PER_SET = 6
"""The most calls of a set that is analysed, of a test, and of a window; `CORE_LIMIT` of crate `runner` (place.rs)."""
