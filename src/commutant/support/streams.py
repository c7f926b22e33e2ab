"""The three standard streams, open whatever the parent gave."""

from __future__ import annotations

import os


def fill_standard_streams() -> None:
    """Opens /dev/null on those of 0, 1 and 2 that the parent has closed (`command >&-`).

    Else a file that is opened later gets such a number, and a program that it is passed to sees its own stream there.
    Python 3.14 itself has the script that it runs open at the first free number, as a file that no program inherits.
    """
    for number in range(3):
        if _is_given(number):
            continue
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, number)
        os.set_inheritable(number, True)
        if null != number:
            os.close(null)


def _is_given(number: int) -> bool:
    """Whether a parent has given it: what this process has opened for itself is not inherited by others."""
    try:
        return os.get_inheritable(number)
    except OSError:
        return False
