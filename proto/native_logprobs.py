"""Log probabilities as `/generate` tells them: growing lists, kept as the JSON they are sent as."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from radixgate.proto.generated import worker_pb2 as pb

_json = msgspec.json.Encoder().encode


class JsonList:
    """A JSON array that only grows. Each element is encoded once, however often it is sent."""

    __slots__ = ("elements",)

    def __init__(self) -> None:
        self.elements = bytearray()  # what stands between the brackets

    def extend(self, elements: Sequence[object]) -> None:
        """O(elements)."""
        if not elements:
            return
        if self.elements:
            self.elements += b","
        self.elements += _json(elements)[1:-1]


class LogprobLists:
    """Of a prompt's or of a choice's tokens so far: each one's own, the likeliest, those asked for.

    The second and the third hold a list for each token if they are told of any, else they are not.
    """

    __slots__ = ("_count", "_each", "_of_ids", "_text", "_tops")

    def __init__(self, text_of: Callable[[int], str | None]) -> None:
        """`text_of`: what stands beside a token's id; None: nothing."""
        self._text = text_of
        self._count = 0
        self._each = JsonList()
        self._tops: JsonList | None = None
        self._of_ids: JsonList | None = None

    def extend(self, entries: Sequence[pb.TokenLogprobs]) -> None:
        """O(entries)."""
        self._each.extend([self._entry(entry) for entry in entries])
        if self._tops is not None or any(entry.top for entry in entries):
            self._tops = self._tops or self._of_nothing()
            self._tops.extend([self._candidates(entry.top) for entry in entries])
        if self._of_ids is not None or any(entry.of_ids for entry in entries):
            self._of_ids = self._of_ids or self._of_nothing()
            self._of_ids.extend([self._candidates(entry.of_ids) for entry in entries])
        self._count += len(entries)

    def fields(self, side: bytes) -> Iterator[bytes | bytearray]:
        """Pieces of an object's members, with a comma before each; `side`: `output` or `input`."""
        for name, told in (
            (b"token_logprobs", self._each),
            (b"top_logprobs", self._tops),
            (b"token_ids_logprobs", self._of_ids),
        ):
            if told is not None and self._count:
                yield b',"%b_%b":[' % (side, name)
                yield told.elements
                yield b"]"

    def _of_nothing(self) -> JsonList:
        """An empty list for each token before."""
        empty = JsonList()
        empty.extend([()] * self._count)
        return empty

    def _entry(self, entry: pb.TokenLogprobs) -> tuple[float | None, int, str | None]:
        logprob = entry.logprob if entry.HasField("logprob") else None
        return logprob, entry.token_id, self._text(entry.token_id)

    def _candidates(
        self, candidates: Iterable[pb.TokenLogprob]
    ) -> list[tuple[float, int, str | None]]:
        return [(one.logprob, one.token_id, self._text(one.token_id)) for one in candidates]
