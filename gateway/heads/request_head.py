"""The head of a request, read strictly: what two servers could read in two ways is refused.

llhttp does the grammar (it refuses bare CR and LF, folded lines, control bytes in names and values,
Content-Length beside Transfer-Encoding, and lengths that are doubled or malformed); the rest of the
rules stand here. Every refusal closes the connection: what follows on it cannot be trusted.
"""

import httptools
import msgspec

from radixgate.errors import PayloadTooLarge, RequestError
from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.attempt.request_ids import fit_request_id
from radixgate.gateway.heads.hop_headers import to_worker
from radixgate.gateway.settings.header_rules import Crosses, everything

MAX_HEAD_BYTES = 65_536
MAX_TARGET_BYTES = 8_192
MAX_KEPT_HEADS = 1_024
MAX_KEPT_HEAD_BYTES = 2_048
# Of a chunked body besides its content: sizes, extensions and trailers. A client that sends single
# bytes as chunks needs six a byte.
MAX_CHUNK_OVERHEAD = 65_536
MAX_OVERHEAD_RATIO = 8

_CHUNKED_HEAD = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
_HTTP_VERSIONS = frozenset((b"HTTP/1.1", b"HTTP/1.0"))


class BadHead(RequestError):
    """The bytes are no request this front will read; 400, and the connection closes."""

    code = "bad_http"

    def __init__(self, message: str) -> None:
        super().__init__(message, code="bad_http")


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    """A request up to its body."""

    method: bytes
    path: bytes  # of the target, up to the query
    line: bytes  # method and target as workers see them, with the version and the line end
    forwarded: bytes  # the header lines that any worker may see, ready to be sent
    authorization: bytes | None  # not among them
    encoding: bytes | None  # of the body; None: it is as it is
    request_id: str | None  # as the client gave it; None: it gave none that is fit
    http11: bool
    keep_alive: bool
    content_length: int  # 0 if there is none, or the body is chunked
    chunked: bool
    expects_continue: bool


class _HeadReader:
    """What llhttp calls back. Fields that decide how the connection goes on are kept apart; one
    given twice reads as a list."""

    __slots__ = ("headers", "noted", "target")

    def __init__(self) -> None:
        self.target = b""
        self.headers: Headers = []
        self.noted: dict[bytes, bytes] = {}

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self.headers.append((name, value))
        if name in _OF_NOTE:
            noted = self.noted
            noted[name] = noted[name] + b"," + value if name in noted else value


_OF_NOTE = frozenset(
    (
        b"authorization",
        b"connection",
        b"content-encoding",
        b"content-length",
        b"transfer-encoding",
        b"expect",
        b"host",
    )
)


def read_head(block: bytes, crosses: Crosses = everything) -> RequestHead:
    """Read the bytes up to and with the first blank line. Raises BadHead. About 4 us."""
    reader = _HeadReader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(block)
    except httptools.HttpParserUpgrade:
        # The client offers another protocol; we may go on in this one, and do.
        pass
    except httptools.HttpParserError as exc:
        raise BadHead(f"malformed request: {exc}") from exc
    method: bytes = parser.get_method()
    target, noted = reader.target, reader.noted
    http11 = _check_line(block, method, target)
    host = noted.get(b"host")
    if host is None and http11:
        raise BadHead("HTTP/1.1 needs a Host header")
    if host is not None and b"," in host:
        raise BadHead("exactly one Host header is expected")
    target = _origin_form(target)
    return RequestHead(
        method=method,
        path=target.partition(b"?")[0],
        line=b"%b %b HTTP/1.1\r\n" % (method, target),
        forwarded=b"".join([b"%b: %b\r\n" % field for field in to_worker(reader.headers, crosses)]),
        authorization=noted.get(b"authorization"),
        encoding=_encoding(noted.get(b"content-encoding")),
        request_id=fit_request_id(reader.headers),
        http11=http11,
        keep_alive=_keeps_alive(noted.get(b"connection"), http11),
        content_length=_length(noted.get(b"content-length", b"0")),
        chunked=_is_chunked(noted.get(b"transfer-encoding"), http11),
        expects_continue=_expects_continue(noted.get(b"expect"), http11),
    )


class HeadCache:
    """Heads that were read before: most clients send one and the same with every request.

    Bounded in number and in bytes; it holds what the heads hold, credentials among it.
    """

    def __init__(self, crosses: Crosses = everything) -> None:
        """`crosses`: which headers workers get."""
        self._known: dict[bytes, RequestHead] = {}
        # Of those, whose body is counted, of an allowed length, and answered here; to be read by
        # others, who say which ones they are.
        self.counted: dict[bytes, RequestHead] = {}
        self._crosses = crosses

    def read(self, block: bytes) -> RequestHead:
        """As `read_head`, which it calls for a head that is new."""
        head = self._known.get(block)
        if head is not None:
            return head
        head = read_head(block, self._crosses)
        # With an id of its own it will not come again.
        if len(block) <= MAX_KEPT_HEAD_BYTES and head.request_id is None:
            if len(self._known) >= MAX_KEPT_HEADS:
                self._known.clear()
                self.counted.clear()
            self._known[block] = head
        return head

    def keep_counted(self, block: bytes, head: RequestHead) -> None:
        """It has been read, and its body is counted; it is kept if it may come again."""
        if block in self._known:
            self.counted[block] = head


def _check_line(block: bytes, method: bytes, target: bytes) -> bool:
    """True for HTTP/1.1. llhttp also knows HTTP/0.9, RTSP, and runs of spaces."""
    if method == b"CONNECT":
        raise BadHead("this is not a proxy: CONNECT is not served")
    if len(target) > MAX_TARGET_BYTES:
        raise BadHead(f"the request target has {len(target)} bytes; at most {MAX_TARGET_BYTES}")
    if block.startswith(b"%b %b HTTP/1.1\r\n" % (method, target)):
        return True
    if block.startswith(b"%b %b HTTP/1.0\r\n" % (method, target)):
        return False
    raise BadHead("malformed request line: METHOD target HTTP/1.1 is expected")


def _length(given: bytes) -> int:
    # llhttp has seen that it has 64 bits; of zeros before it Python reads some thousands only.
    return int(given.lstrip(b"0 \t") or b"0")


def _is_chunked(encoding: bytes | None, http11: bool) -> bool:
    if encoding is None:
        return False
    if not http11:
        raise BadHead("Transfer-Encoding is not part of HTTP/1.0")
    if encoding.strip(b" \t").lower() != b"chunked":
        raise BadHead("of transfer encodings only chunked is read")
    return True


def _keeps_alive(connection: bytes | None, http11: bool) -> bool:
    if connection is None:
        return http11
    options = [option.strip(b" \t") for option in connection.lower().split(b",")]
    return b"close" not in options if http11 else b"keep-alive" in options


def _encoding(given: bytes | None) -> bytes | None:
    """None: the body is as it is, however often that is said."""
    if given is None or all(
        one.strip(b" \t") in (b"", b"identity") for one in given.lower().split(b",")
    ):
        return None
    return given


def _expects_continue(expect: bytes | None, http11: bool) -> bool:
    if expect is None or not http11:
        return False
    if expect.strip(b" \t").lower() != b"100-continue":
        raise BadHead("of expectations only 100-continue is met")
    return True


def _origin_form(target: bytes) -> bytes:
    """`http://host/path` means `/path`; a fragment is none of a server's business."""
    target = target.partition(b"#")[0]
    if target[:1] in (b"/", b"*"):
        return target
    rest = target.partition(b"://")[2]
    slash = rest.find(b"/")
    return rest[slash:] if slash >= 0 else b"/"


class ChunkedBody:
    """Collects a chunked request body. llhttp reads the chunks; trailers are dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._fed = 0
        self._messages = 0
        self.complete = False
        self.surplus = False  # bytes of a next request came in the same piece, and are lost
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(_CHUNKED_HEAD)

    def feed(self, piece: bytes | memoryview) -> None:
        """Raises BadHead, or PayloadTooLarge once the content is over the limit."""
        self._fed += len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self.surplus = True  # only a next request can ask for it
        except httptools.HttpParserError as exc:
            if not self.complete:
                raise BadHead(f"malformed chunked body: {exc}") from exc
            self.surplus = True
        if self._size > self._max_bytes:
            raise too_large(self._size, self._max_bytes)
        if self.complete:
            return  # what came behind it in one piece is no framing of its
        if self._fed - self._size > MAX_CHUNK_OVERHEAD + MAX_OVERHEAD_RATIO * self._size:
            raise BadHead("a chunked body with more framing than content")

    @property
    def begun(self) -> bool:
        return self._fed > 0

    def content(self) -> bytes:
        return b"".join(self._parts)

    def on_body(self, data: bytes) -> None:
        if not self.complete:
            self._parts.append(data)
            self._size += len(data)

    def on_message_begin(self) -> None:
        self._messages += 1
        self.surplus = self._messages > 1

    def on_message_complete(self) -> None:
        self.complete = True


def too_large(size: int, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the body has {size} bytes or more; at most {limit} (--max-payload-size)",
        param="body",
        code="payload_too_large",
    )
