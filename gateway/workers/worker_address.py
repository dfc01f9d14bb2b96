"""What a worker's URL says: how to speak to it, where it is, and what it is called here."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from radixgate.errors import RequestError

# It stands in headers and logs as it is. Underscores are no part of names, and used all the same.
_LABEL = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}"
_MOST_HOST_BYTES = 253
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?|[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*(?:%[A-Za-z0-9_.-]+)?")


@dataclass(frozen=True, slots=True)
class WorkerAddress:
    """A worker's URL, read. Two spellings of one address are equal."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.id}"

    @property
    def id(self) -> str:
        """`host:port`: what `/workers/{id}` and the x-radixgate-worker header name it by."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def read_worker_url(url: str, schemes: frozenset[str]) -> WorkerAddress:
    """Raises RequestError if the URL is none, or names more than an address."""
    if "," in url:
        raise RequestError(
            f"worker {url!r:.200}: one URL is expected; several have spaces between them",
            param="url",
        )
    example = " or ".join(f"{scheme}://host:port" for scheme in sorted(schemes))
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise RequestError(f"worker {url!r:.200}: {exc}", param="url") from exc
    scheme = parts.scheme.lower()
    if scheme not in schemes or host is None or not port:
        raise RequestError(f"worker {url!r:.200}: {example} is expected", param="url")
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
        raise RequestError(
            f"worker {url!r:.200}: only an address is expected, {example}", param="url"
        )
    if not _is_host(host):
        raise RequestError(
            f"worker {url!r:.200}: {host!r:.100} is no name of a host, nor an address of one"
            f"{_in_ascii(host)}",
            param="url",
        )
    return WorkerAddress(scheme, host, port)


def _is_host(name: str) -> bool:
    return len(name) <= _MOST_HOST_BYTES and _HOST.fullmatch(name) is not None


def _in_ascii(host: str) -> str:
    """How a name in another script is written on the wire; empty: it is none, or one for which
    newer rules of such names have another spelling than the ones that Python knows."""
    if host.isascii():
        return ""
    try:
        written = host.encode("idna")
        same = written.decode("idna") == host
    except UnicodeError:
        return ""
    name = written.decode("ascii")
    return f" (write it as {name!r})" if same and _is_host(name) else ""
