"""What a worker's URL says: how to speak to it, where it is, and what it is called here."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from radixgate.errors import RequestError


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
    return WorkerAddress(scheme, host, port)
