"""Tests of what changes free, and of whether they did."""
