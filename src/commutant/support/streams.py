"""The three standard streams, open whatever the parent gave."""

from __future__ import annotations

import os


def fill_standard_streams() -> None:
    """Opens /dev/null on those of 0, 1 and 2 that are closed (`command >&-`).

    Else a file that is opened later gets such a number, and a program that it is passed to sees its own stream there.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest number that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
