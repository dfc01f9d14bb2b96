"""The headers that the gateway puts on every response, whoever answers it."""

from collections.abc import Iterable

from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.attempt.request_ids import HEADER, RequestIds, fit_request_id


class OwnHeaders:
    """`x-request-id` and `x-radixgate-policy` for what is answered without a worker."""

    def __init__(self, policy: bytes, request_ids: RequestIds) -> None:
        self._policy = (b"x-radixgate-policy", policy)
        self._request_ids = request_ids

    def of(self, request_id: str | None) -> Headers:
        """None: the client gave no id that is fit to be passed on, or was not understood."""
        made = request_id or self._request_ids.make()
        return [(HEADER, made.encode("ascii")), self._policy]

    def for_request(self, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
        """As text, for a request with these headers (names in any case)."""
        given = fit_request_id([(name.lower(), value) for name, value in headers])
        return {name.decode(): value.decode() for name, value in self.of(given)}
