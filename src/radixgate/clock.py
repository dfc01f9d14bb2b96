"""Time as an argument: whoever needs a clock is given one."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds on a monotonic scale; only differences mean anything."""

    def now(self) -> float: ...


class SystemClock:
    """The machine's monotonic clock."""

    # Not a method of ours: it is asked for the time many times a request.
    now = staticmethod(time.monotonic)
