"""Interfaces of many kinds, each compared with brute force."""
