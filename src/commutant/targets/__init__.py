"""Implementations under test: what the checker asks of one (`base`), which there are (`registry`), and those."""
