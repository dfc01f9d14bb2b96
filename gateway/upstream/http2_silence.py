"""Whether a connection that is silent lives: it is asked, and given up if it does not answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST_WORD_S = 2.0  # from the connection to the worker's settings


# gRPC's servers take pings of a connection without traffic so far apart, if nobody set another.
MOST_AFTER_S = 300.0


@dataclass(slots=True)
class Pings:
    """When a silent connection is asked, and how long its answer may take; one worker's."""

    after_s: float = 10.0
    within_s: float = 5.0
    _first_after_s: float = field(init=False, compare=False)

    def __post_init__(self) -> None:
        self._first_after_s = self.after_s

    def be_rarer(self) -> None:
        """The worker finds them too many: it is no worker of ours, or an old one.

        It is not tried whether it still does, as it ends all that runs there when it does.
        """
        self.after_s = min(2 * self.after_s, max(MOST_AFTER_S, self._first_after_s))

    def start_over(self) -> None:
        """Another process answers there, which has found nothing too many."""
        self.after_s = self._first_after_s


class Silence:
    """Counts from `heard_at`, which its owner sets, by the loop's time, whenever bytes come."""

    def __init__(
        self, pings: Pings, ask: Callable[[], None], give_up: Callable[[str], None]
    ) -> None:
        """`ask` sends a ping; any byte is an answer. `give_up` is told why."""
        self.heard_at = 0.0
        self._pings = pings
        self._ask = ask
        self._give_up = give_up
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def await_first_word(self) -> None:
        """A machine takes connections for a process that has stopped."""
        self._set_timer(FIRST_WORD_S, self._no_first_word)

    def watch(self) -> None:
        """It has spoken."""
        self._set_timer(self._pings.after_s, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now = self._loop.time()
        left_s = self.heard_at + self._pings.after_s - now
        if left_s > 0:
            self._set_timer(left_s, self._look)
            return
        self._ask()
        self._set_timer(self._pings.within_s, lambda: self._judge(now))

    def _judge(self, asked_at: float) -> None:
        if self.heard_at >= asked_at:
            self._look()
        else:
            self._give_up(f"no answer to a ping within {self._pings.within_s:g} s")

    def _no_first_word(self) -> None:
        self._give_up(f"no word of HTTP/2 within {FIRST_WORD_S:g} s")

    def _set_timer(self, seconds: float, then: Callable[[], None]) -> None:
        self.stop()
        self._timer = self._loop.call_later(seconds, then)
