"""Log probabilities in the shapes of the two OpenAI APIs."""

import codecs
from collections.abc import Callable, Sequence

from radixgate.proto.generated import worker_pb2 as pb

TokenBytes = Callable[[int], bytes]


class Offsets:
    """Where the tokens of a choice begin in its text, in characters: in a stream as in a whole."""

    __slots__ = ("_at", "_decoder")

    def __init__(self) -> None:
        self._at = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def next(self, raw: bytes) -> int:
        """Of the token with these bytes; one inside a character begins where that does."""
        at = self._at
        self._at += len(self._decoder.decode(raw))
        return at


def chat(entries: Sequence[pb.TokenLogprobs], token_bytes: TokenBytes) -> dict[str, object]:
    """`{"content": [...]}`; a token that is no whole character has its bytes beside it."""
    return {
        "content": [
            {
                **_token(entry.token_id, entry.logprob, token_bytes),
                "top_logprobs": [
                    _token(top.token_id, top.logprob, token_bytes) for top in entry.top
                ],
            }
            for entry in entries
        ]
    }


def completion(
    entries: Sequence[pb.TokenLogprobs], token_bytes: TokenBytes, offsets: Offsets
) -> dict[str, object]:
    """Parallel arrays, one element a token. `offsets`: of the choice, which go on here."""
    tokens = [token_bytes(entry.token_id) for entry in entries]
    return {
        "tokens": list(map(_text, tokens)),
        # An echoed prompt's first token has none.
        "token_logprobs": [
            entry.logprob if entry.HasField("logprob") else None for entry in entries
        ],
        "top_logprobs": [
            {_text(token_bytes(top.token_id)): top.logprob for top in entry.top}
            if entry.HasField("logprob")
            else None
            for entry in entries
        ],
        "text_offset": list(map(offsets.next, tokens)),
    }


def _token(token_id: int, logprob: float, token_bytes: TokenBytes) -> dict[str, object]:
    raw = token_bytes(token_id)
    return {"token": _text(raw), "logprob": logprob, "bytes": list(raw)}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
