"""Tests of verdicts, campaigns, corpus files and run directories."""
