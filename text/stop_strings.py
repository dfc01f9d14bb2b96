"""Finds where an output must stop, and lets nothing out that could still become a stop string."""

from collections.abc import Sequence

from radixgate.errors import RequestError


class StopStrings:
    """The stop strings of one output.

    The first to *complete* wins; of several that complete at the same character, the longest. So
    the result depends on the text only, never on how it was cut into pieces: streamed and whole
    answers are alike. Held back is the longest end of the text that begins some stop string: less
    than the longest of them.

    An Aho-Corasick automaton: a piece costs O(its characters) whatever the number of stop
    strings, and building costs O(their characters together), so their bound is the caller's bound
    on the request.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """No stop strings: everything passes. Raises RequestError for an empty one."""
        if "" in stops:
            raise RequestError("a stop string must have at least one character", param="stop")
        self._next: list[dict[str, int]] = [{}]
        self._depth = [0]
        self._ends: list[str | None] = [None]  # the longest stop that ends in this state
        self._fallback = [0]
        for stop in stops:
            self._add(stop)
        self._link()
        self._state = 0
        self._held = ""
        self._matched: str | None = None

    def push(self, text: str) -> tuple[str, str | None]:
        """What may be shown now, and the stop string that has completed (None: go on).

        The shown text ends before the stop string. After a match nothing more comes out.
        """
        if self._matched is not None:
            return "", self._matched
        pending = self._held + text
        for end, character in enumerate(text, len(self._held) + 1):
            self._state = self._step(self._state, character)
            stop = self._ends[self._state]
            if stop is not None:
                self._held, self._matched = "", stop
                return pending[: end - len(stop)], stop
        cut = len(pending) - self._depth[self._state]
        self._held = pending[cut:]
        return pending[:cut], None

    def flush(self) -> str:
        """End of the output: what was held back and did not become a stop string."""
        held, self._held, self._state = self._held, "", 0
        return held

    def check(self) -> None:
        """What must hold between any two pushes."""
        assert self._matched is None or not self._held, "text is held after a match"
        assert self._matched is not None or len(self._held) == self._depth[self._state]

    def _add(self, stop: str) -> None:
        state = 0
        for character in stop:
            following = self._next[state].get(character)
            if following is None:
                following = len(self._next)
                self._next[state][character] = following
                self._next.append({})
                self._depth.append(self._depth[state] + 1)
                self._ends.append(None)
                self._fallback.append(0)
            state = following
        self._ends[state] = stop

    def _link(self) -> None:
        """Give every state its longest proper end that also begins a stop, by growing depth."""
        level = list(self._next[0].values())
        while level:
            below: list[int] = []
            for state in level:
                for character, following in self._next[state].items():
                    shorter = self._step(self._fallback[state], character)
                    self._fallback[following] = shorter
                    self._ends[following] = self._ends[following] or self._ends[shorter]
                    below.append(following)
            level = below

    def _step(self, state: int, character: str) -> int:
        while state and character not in self._next[state]:
            state = self._fallback[state]
        return self._next[state].get(character, 0)
