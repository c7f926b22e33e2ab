"""Targets that are programs under QEMU's user mode."""
