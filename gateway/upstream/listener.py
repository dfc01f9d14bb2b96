"""Who hears an answer as it comes from a worker's connection."""

from typing import Protocol

from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.attempt import Headers


class Listener(Protocol):
    """Who gets an answer; `on_complete`, `on_answer` or `on_broken` comes last."""

    def on_response(self, status: int, headers: Headers) -> None:
        """Names in lower case, everything the worker sent."""
        ...

    def on_data(self, data: bytes) -> None: ...

    def on_complete(self) -> None: ...

    def on_answer(self, status: int, headers: Headers, body: bytes) -> None:
        """All of it in one piece, in place of the three."""
        ...

    def on_broken(self, error: RadixgateError, answered: bool) -> None:
        """WorkerFailed, or a fault of ours. `answered`: at least one byte of it had come."""
        ...
