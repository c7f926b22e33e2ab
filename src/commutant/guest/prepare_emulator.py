"""Which emulator of programs there is: `python -m commutant.guest.prepare_emulator`, part of `make setup`.

It fetches one if none in PATH takes plugins and none was fetched before.
"""

from __future__ import annotations

import sys

from commutant.guest.fetched_emulator import fetch_emulator
from commutant.guest.user_emulator import find_user_emulator
from commutant.support import CommutantError, RunError


def main() -> int:
    """For `make setup`: fetches the emulator if there is none, and prints which one there is."""
    try:
        try:
            emulator = find_user_emulator()
        except RunError:
            emulator = fetch_emulator()
    except CommutantError as error:
        print(f"emulator of programs: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{emulator.path}, {emulator.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
