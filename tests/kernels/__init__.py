"""Tests of kernels that are built from sources and patches."""
