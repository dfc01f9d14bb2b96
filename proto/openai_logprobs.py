"""Log probabilities in the shapes of the two OpenAI APIs."""

from collections.abc import Callable, Sequence

from radixgate.proto.generated import worker_pb2 as pb

TokenBytes = Callable[[int], bytes]


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


def completion(entries: Sequence[pb.TokenLogprobs], token_bytes: TokenBytes) -> dict[str, object]:
    """Parallel arrays, one element a token; offsets in characters from the first entry."""
    tokens = [_text(token_bytes(entry.token_id)) for entry in entries]
    offsets, offset = [], 0
    for token in tokens:
        offsets.append(offset)
        offset += len(token)
    return {
        "tokens": tokens,
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
        "text_offset": offsets,
    }


def _token(token_id: int, logprob: float, token_bytes: TokenBytes) -> dict[str, object]:
    raw = token_bytes(token_id)
    return {"token": _text(raw), "logprob": logprob, "bytes": list(raw)}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
