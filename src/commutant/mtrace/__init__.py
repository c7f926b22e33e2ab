"""Drives the tracer, judges what tests share, and counts what a campaign found."""
