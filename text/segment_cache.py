"""Token ids of what was tokenized before: conversations grow, so most of a prompt is not new."""

import re
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import pairwise

EncodeBatch = Callable[[list[str]], Sequence["array[int]"]]

_ENTRY_CHARS = 64  # what an entry costs beside its text, in the cache's unit


class SegmentCache:
    """Tokenizes a text in segments that end at special tokens, and keeps the ids of each.

    Exact only where the tokenizer itself cuts at those tokens before anything else and looks at
    each piece alone; whoever builds the cache has that proof (`Tokenizer.cut_points`), or gives
    None and gets the whole text tokenized as one segment.

    Bounded by `budget_chars` of kept text, least recently used first out. Any thread may call it;
    only the look-ups are under the lock, not the tokenizing.
    """

    def __init__(
        self, encode_batch: EncodeBatch, cut_points: re.Pattern[str] | None, budget_chars: int
    ) -> None:
        self._encode_batch = encode_batch
        self._cut_points = cut_points
        self._budget_chars = budget_chars
        self._kept: OrderedDict[str, array[int]] = OrderedDict()
        self._kept_chars = 0
        self._cut_before: tuple[str, list[str]] | None = None
        self._lock = threading.Lock()
        self.hit_chars = 0
        self.missed_chars = 0

    def encode(self, text: str) -> "array[int]":
        """Ids of the whole text. O(len(text)), a small constant for the segments that are kept."""
        before, self._cut_before = self._cut_before, None
        segments = before[1] if before is not None and before[0] is text else self._cut(text)
        found = self._look_up(segments)
        missing = list(dict.fromkeys(s for s in segments if s not in found))
        if missing:
            fresh = dict(zip(missing, self._encode_batch(missing), strict=True))
            found.update(fresh)
            self._keep(fresh)
        ids = array("I")
        for segment in segments:
            ids.extend(found[segment])
        return ids

    def unknown_chars(self, text: str) -> int:
        """How many characters `encode` would have tokenized now. O(len(text)); if this very text
        is encoded next, it is not cut again."""
        segments = self._cut(text)
        self._cut_before = text, segments
        with self._lock:
            return sum([len(one) for one in segments if one not in self._kept])

    def check(self) -> None:
        assert self._kept_chars == sum(map(_cost, self._kept))
        assert self._kept_chars <= self._budget_chars

    def _cut(self, text: str) -> list[str]:
        """Each special token begins a segment, so a message is one: `<|im_start|>user ...`."""
        if self._cut_points is None:
            return [text] if text else []
        starts = [match.start() for match in self._cut_points.finditer(text)]
        bounds = [0, *starts, len(text)]
        return [text[a:b] for a, b in pairwise(bounds) if a < b]

    def _look_up(self, segments: Sequence[str]) -> "dict[str, array[int]]":
        found = {}
        with self._lock:
            for segment in segments:
                ids = self._kept.get(segment)
                if ids is None:
                    self.missed_chars += len(segment)
                    continue
                self._kept.move_to_end(segment)
                self.hit_chars += len(segment)
                found[segment] = ids
        return found

    def _keep(self, fresh: "dict[str, array[int]]") -> None:
        with self._lock:
            for segment, ids in fresh.items():
                # However short: each message of a chat brings the same two or three.
                if len(segment) > self._budget_chars - _ENTRY_CHARS:
                    continue
                if segment not in self._kept:
                    self._kept[segment] = ids
                    self._kept_chars += _cost(segment)
            while self._kept_chars > self._budget_chars:
                oldest, _ = self._kept.popitem(last=False)
                self._kept_chars -= _cost(oldest)


def _cost(segment: str) -> int:
    return len(segment) + _ENTRY_CHARS
