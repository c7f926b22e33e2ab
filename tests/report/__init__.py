"""Tests of the reports, on invented runs."""
