"""A worker of ours before it has been asked anything: what speaks to it is not loaded yet.

gRPC, the tokenizers and the templates are 15 MB that a gateway of foreign workers has no use for.
"""

from collections.abc import Callable

from radixgate.errors import WorkerFailed
from radixgate.fleet.fleet import WorkerIdentity
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.attempt.attempt import WorkerClient
from radixgate.gateway.upstream.fetch import Fetched
from radixgate.gateway.workers.grpc_worker_parts import GrpcWorkerParts
from radixgate.gateway.workers.worker_address import WorkerAddress
from radixgate.gateway.workers.worker_handle import OrderResult, WorkerHandle


class LateGrpcWorker:
    """A `WorkerHandle`. From its first probe on it is the `GrpcWorker` that it makes then."""

    def __init__(self, address: WorkerAddress, parts: GrpcWorkerParts) -> None:
        self._address = address
        self._parts = parts
        self._worker: WorkerHandle | None = None  # None: not asked yet

    @property
    def client(self) -> WorkerClient:
        assert self._worker is not None, "a client is asked for before the first probe"
        return self._worker.client

    async def probe(self) -> WorkerIdentity:
        """The first of all such workers takes a third of a second longer, in a thread."""
        if self._worker is None:
            make = await self._parts.prompts.off_the_loop(_grpc_worker)
            self._worker = self._worker or make(self._address, self._parts)
        return await self._worker.probe()

    async def run(self) -> None:
        assert self._worker is not None, "run before the first probe"
        await self._worker.run()

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()

    def heard(self) -> bool:
        return self._worker is not None and self._worker.heard()

    async def flush_cache(self) -> OrderResult:
        return await self._worker.flush_cache() if self._worker else self._not_asked()

    async def abort_request(self, order: AbortOrder) -> OrderResult:
        return await self._worker.abort_request(order) if self._worker else self._not_asked()

    async def read_rids(self) -> None:
        """They are known."""

    def expect_abort(self, order: AbortOrder) -> Callable[[bool], None]:
        return self._worker.expect_abort(order) if self._worker else lambda taken: None

    def runs(self, order: AbortOrder) -> bool:
        return self._worker is not None and self._worker.runs(order)

    async def ask(self, method: str, path: str, body: bytes) -> Fetched:
        if self._worker is None:
            raise WorkerFailed(self._not_asked().message)
        return await self._worker.ask(method, path, body)

    async def info(self, path: str) -> OrderResult:
        return await self._worker.info(path) if self._worker else self._not_asked()

    def _not_asked(self) -> OrderResult:
        return OrderResult(False, f"worker {self._address.id} has not been asked who it is yet")


def _grpc_worker() -> Callable[[WorkerAddress, GrpcWorkerParts], WorkerHandle]:
    # Not at the top: 15 MB, for which most gateways of foreign workers have no use.
    from radixgate.gateway.workers.grpc_worker import GrpcWorker

    return GrpcWorker
