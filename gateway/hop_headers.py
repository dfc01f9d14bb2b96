"""Which headers end at this hop, and which go on to the other side."""

from radixgate.gateway.attempt import Headers

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
# Set anew towards the worker: its address, the length of what is sent, and the request's name.
_NOT_UPSTREAM = _HOP_BY_HOP | {b"host", b"content-length", b"expect", b"x-request-id"}
# Set by the gateway towards the client.
_NOT_DOWNSTREAM = _HOP_BY_HOP | {
    b"x-request-id",
    b"x-radixgate-worker",
    b"x-radixgate-policy",
}


def to_worker(headers: Headers) -> Headers:
    """Of a client's request, what the worker gets. Names are in lower case."""
    return _without(headers, _NOT_UPSTREAM)


def to_client(headers: Headers) -> Headers:
    """Of a worker's answer, what the client gets; a content-length only if it is the truth."""
    chunked = any(name == b"transfer-encoding" for name, _ in headers)
    return _without(headers, _NOT_DOWNSTREAM | {b"content-length"} if chunked else _NOT_DOWNSTREAM)


def _without(headers: Headers, dropped: frozenset[bytes]) -> Headers:
    for name, value in headers:
        if name == b"connection":
            dropped = dropped | {named.strip(b" \t") for named in value.lower().split(b",")}
    return [field for field in headers if field[0] not in dropped]
