"""Tests of the lock view, on real programs."""
