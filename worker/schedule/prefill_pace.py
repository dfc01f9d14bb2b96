"""How many tokens of prompts a step may take so that those who decode hardly notice."""

import statistics
from collections import deque
from collections.abc import Iterable
from typing import Final

LEAST_CHUNK: Final = 4  # tokens; for fewer a step costs nearly as much

# Where the SLO leaves no room, prompts still add this much to the time that decoding takes. In
# tokens it would be next to nothing where many decode, and too much where a context is long.
_LEAST_SHARE = 0.25
# A new measurement counts for so much: what things cost drifts with contexts, batch and machine.
_WEIGHT = 0.25
# Of so many measurements the middle one counts, so that a single hiccup does not.
_HEARD = 3
# A step stands out of the two before and the two after it: not if it is the first of many, as when
# others join, but if one or two are long.
_AROUND = 5
# By how much steps stand out: at first, and within what bounds. More happens where others want the
# processor; but what is kept for it prompts do not get, and while they last, contexts and with them
# all steps grow.
_FIRST_SPREAD = 1.25
_LEAST_SPREAD = 1.1
_MOST_SPREAD = 1.4
_FORGOTTEN = 1.0 / 256.0  # of it in a step, unless another stands out as far


class PrefillPace:
    """Learns from measured steps what decoding costs in a step and what a prompt token adds.

    With it a chunk is as large as an inter-token latency of `slo_s` allows. While prompts are
    computed no step tells the two costs apart: what it took against what was foretold corrects
    both alike, so that what is foretold for steps of this size comes true, whichever was wrong.

    The latency is to hold for the longest step, not for the middle one. So steps are to take less
    than `slo_s` by as much as the worst of late stood out of those around it.
    """

    def __init__(self, slo_s: float, even_context: int | None = None) -> None:
        """A token costs twice as much after `even_context` tokens as at the beginning, and so on
        in a straight line; None: the same everywhere."""
        self._slo_s = slo_s
        self._per_context = 0.0 if even_context is None else 1.0 / even_context
        self._decode_s: float | None = None  # of a step that only decodes; None: none yet
        # What a prompt's first token adds to it, and what it takes by itself; None: not measured.
        self._token_s: float | None = None
        self._alone_s: float | None = None
        # What recent steps took over what was foretold: those that only decoded, and the mixed.
        self._decoding: deque[float] = deque(maxlen=_AROUND)
        self._mixed: deque[float] = deque(maxlen=_AROUND)
        self._spread = _FIRST_SPREAD

    @property
    def aim_s(self) -> float:
        """What a step should take, so that the longest keep the latency."""
        return self._slo_s / self._spread

    def tokens(self, start: int) -> int:
        """Tokens from this one of a prompt on for a step in which somebody decodes; LEAST_CHUNK at
        least."""
        token_s = self._alone_s if self._token_s is None else self._token_s
        if token_s is None:
            return LEAST_CHUNK
        decode_s = self._decode_s or 0.0
        room_s = max(self.aim_s - decode_s, _LEAST_SHARE * decode_s)
        return max(LEAST_CHUNK, int(room_s / (token_s * self._weight(start))))

    def stepped(self, prefill: Iterable[tuple[int, int]], seconds: float, *, decodes: bool) -> None:
        """A step took so long; `prefill`: where each chunk of a prompt began, and its tokens;
        `decodes`: somebody else decoded. One that took no time teaches nothing."""
        if seconds <= 0.0:
            return
        work = sum(count * self._weight(start) for start, count in prefill)
        if not work:
            self._decode_s = self._decoded(seconds)
        elif decodes:
            self._learn_from_mixed(work, seconds)
        else:
            # In large chunks a token costs less than beside decoding: good for a first guess only.
            own_s = seconds / work
            old_s = own_s if self._alone_s is None else self._alone_s
            self._alone_s = old_s + _WEIGHT * (own_s - old_s)

    def _weight(self, start: int) -> float:
        """What a token costs there, in first tokens of a prompt."""
        return 1.0 + start * self._per_context

    def _decoded(self, seconds: float) -> float:
        if self._decode_s is None:
            return seconds
        return self._decode_s * self._correction(self._decoding, seconds / self._decode_s)

    def _learn_from_mixed(self, work: float, seconds: float) -> None:
        decode_s = self._decode_s or 0.0
        token_s = self._alone_s if self._token_s is None else self._token_s
        if token_s is None:
            token_s = seconds / work
        by = self._correction(self._mixed, seconds / (decode_s + token_s * work))
        self._token_s = token_s * by
        if self._decode_s is not None:
            self._decode_s *= by

    def _correction(self, heard: deque[float], ratio: float) -> float:
        heard.append(ratio)
        if len(heard) == _AROUND:
            # That all take longer than foretold is corrected; that some do has to be allowed for.
            stands_out = heard[_AROUND // 2] / statistics.median(heard)
            kept = self._spread - _FORGOTTEN * (self._spread - 1.0)
            self._spread = min(max(stands_out, kept, _LEAST_SPREAD), _MOST_SPREAD)
        return float(statistics.median(list(heard)[-_HEARD:]) ** _WEIGHT)
