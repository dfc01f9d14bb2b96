"""Which headers end at this hop, and which go on to the other side."""

from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.settings.header_rules import Crosses, everything

_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
# Set anew towards the worker: its address, the length of what is sent, the request's name, and the
# credentials, which are not the same for every worker.
_NOT_UPSTREAM = _HOP_BY_HOP | {
    b"authorization",
    b"host",
    b"content-length",
    b"expect",
    b"x-request-id",
}
# Set by the gateway towards the client.
_NOT_DOWNSTREAM = _HOP_BY_HOP | {
    b"x-request-id",
    b"x-radixgate-worker",
    b"x-radixgate-policy",
}


def to_worker(headers: Headers, crosses: Crosses = everything) -> Headers:
    """Of a client's request, what the worker gets. Names are in lower case."""
    kept = [field for field in headers if field[0] not in _NOT_UPSTREAM and crosses(field[0])]
    return kept if len(kept) == len(headers) else _without_named(headers, kept)


def to_client(headers: Headers, crosses: Crosses = everything) -> Headers:
    """Of a worker's answer, what the client gets; a content-length only if it is the truth."""
    kept = [field for field in headers if field[0] not in _NOT_DOWNSTREAM and crosses(field[0])]
    if len(kept) == len(headers):
        return kept
    if any(name == b"transfer-encoding" for name, _ in headers):
        kept = [field for field in kept if field[0] != b"content-length"]
    return _without_named(headers, kept)


def _without_named(headers: Headers, kept: Headers) -> Headers:
    """Drop of `kept` what a Connection field of `headers` names."""
    named: set[bytes] = set()
    for name, value in headers:
        if name == b"connection":
            named.update(option.strip(b" \t") for option in value.lower().split(b","))
    return [field for field in kept if field[0] not in named] if named else kept


def find(headers: Headers, name: bytes) -> bytes | None:
    """The value of the first field of this name; None if there is none."""
    for known, value in headers:
        if known == name:
            return value
    return None
