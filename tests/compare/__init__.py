"""Tests of commutant.compare."""
