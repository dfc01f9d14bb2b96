"""What the gateway needs of a worker besides answers: its identity, its watches, its obedience."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from radixgate.fleet.fleet import WorkerIdentity
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.attempt.attempt import WorkerClient
from radixgate.gateway.upstream.fetch import Fetched
from radixgate.gateway.workers.worker_address import WorkerAddress


class WorkerProbe(Protocol):
    """Asks a worker who it is, which also tells that it lives."""

    async def probe(self) -> WorkerIdentity:
        """Raises WorkerUnreachable if nobody listens there, WorkerFailed if the answer is no good
        (still loading, no model known, timed out), InternalFault if we could not read it."""
        ...


@dataclass(frozen=True, slots=True)
class OrderResult:
    """How a worker took an order. `answer` is its own JSON, None if it gave none."""

    ok: bool
    message: str
    answer: object = None


class WorkerHandle(WorkerProbe, Protocol):
    """Everything about one worker of the fleet; made once an address is known."""

    @property
    def client(self) -> WorkerClient:
        """Of one that has answered a probe."""
        ...

    async def run(self) -> None:
        """What must go on while the worker is in the fleet (streams, watches). Started when the
        worker first answers a probe, and anew when another process answers at its address;
        cancelled when it is removed. Reconnects by itself."""
        ...

    def close(self) -> None:
        """Break off what runs there and free the connections; last."""
        ...

    def heard(self) -> bool:
        """Bytes of an answer have come from it since this was last asked."""
        ...

    async def flush_cache(self) -> OrderResult: ...

    async def abort_request(self, order: AbortOrder) -> OrderResult:
        """Of this worker's requests, those that it means."""
        ...

    async def read_rids(self) -> None:
        """Of what runs there, before an order that names one: in turns of the loop, so that the
        order itself holds up nobody."""
        ...

    def expect_abort(self, order: AbortOrder) -> Callable[[bool], None]:
        """Somebody may tell the worker to end these: how they end is not its fault, nor of those
        that begin until what is returned is called, with whether the worker took the order."""
        ...

    def runs(self, order: AbortOrder) -> bool:
        """This gateway has sent it a request that the order means, and that has not ended."""
        ...

    async def ask(self, method: str, path: str, body: bytes) -> Fetched:
        """The worker's own answer, whatever its status. Raises as `fetch`."""
        ...

    async def info(self, path: str) -> OrderResult:
        """The worker's own answer to `GET path` (/get_server_info, /get_model_info)."""
        ...


class WorkerFactory(Protocol):
    """Makes a handle for an address; one a URL scheme."""

    def __call__(self, address: WorkerAddress, api_key: str | None) -> WorkerHandle:
        """Connects to nothing yet. `api_key`: what this worker is asked with, on every call.

        Raises RequestError if such a worker takes no key.
        """
        ...
