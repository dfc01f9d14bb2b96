"""How long a worker is left alone between a connection's end and the next."""

from radixgate.clock import Clock

RECONNECT_FIRST_S = 0.1
RECONNECT_MOST_S = 1.0
LASTED_S = 5.0


class ReconnectPause:
    """Doubled with each connection that did not last, whatever it brought: a worker whose every
    answer is of no use would be asked ten times a second for ever."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_s = RECONNECT_FIRST_S
        self._began = clock.now()

    def begin(self) -> None:
        """A connection is about to be made."""
        self._began = self._clock.now()

    def end(self) -> float:
        """It has ended; seconds to wait before the next."""
        if self._clock.now() - self._began >= LASTED_S:
            self._next_s = RECONNECT_FIRST_S
        pause_s = self._next_s
        self._next_s = min(pause_s * 2, RECONNECT_MOST_S)
        return pause_s
