"""Random sequences on model and implementation."""
