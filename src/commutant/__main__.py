"""`python -m commutant` is the same as `commutant`."""

import sys

from commutant.cli import main

sys.exit(main())
