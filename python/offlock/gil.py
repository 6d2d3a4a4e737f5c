"""Another name of `offlock.lock`, which reads like a mutex where it is used."""

import sys

from . import lock

sys.modules[__name__] = lock
