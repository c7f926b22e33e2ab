"""For all tests: signals do what they do in a terminal, and no property has a time in which it must be checked.

A shell starts what runs in its background with SIGINT ignored, and nohup does so with SIGHUP; children inherit that,
and rightly leave such signals ignored. Tests that send them to children need the default.

How long an example takes, to be drawn or to be checked, says more of what else the machine does than of the code.
"""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("commutant", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("commutant")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
