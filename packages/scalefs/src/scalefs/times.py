"""Times of files, as `os.utime` takes them."""

from __future__ import annotations

_SECOND_NS = 10**9


def chosen_times(times: tuple[float, float] | None, ns: tuple[int, int] | None) -> tuple[int, int] | None:
    """In nanoseconds; None for the present. ValueError for both, TypeError for what are not two, as by `os.utime`."""
    if times is not None and ns is not None:
        raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
    given = times if times is not None else ns
    if given is None:
        return None
    if not isinstance(given, tuple) or len(given) != 2:
        raise TypeError("utime: expected a tuple of two numbers, or None")
    if ns is not None:
        return ns
    accessed, modified = (_nanoseconds(time) for time in given)
    return accessed, modified


def _nanoseconds(seconds: float) -> int:
    """Rounded down, as the system's call is given them."""
    whole = int(seconds // 1)
    return whole * _SECOND_NS + int((seconds - whole) * _SECOND_NS)
