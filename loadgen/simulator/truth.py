"""The workers as they are, without delay: for the oracle, and for rules that poll engines."""

from collections.abc import Sequence

from radixgate.loadgen.simulator.worker import SimulatedWorker


class Truth:
    """Columns over worker ids; each look costs O(ids)."""

    def __init__(self, workers: Sequence[SimulatedWorker]) -> None:
        self._workers = {f"w{worker.number}": worker for worker in workers}

    def owed_tokens(self, ids: Sequence[str]) -> list[int]:
        """Prompt tokens still to be computed."""
        return [self._workers[name].owed_tokens for name in ids]

    def requests(self, ids: Sequence[str]) -> list[int]:
        """Waiting and running."""
        return [self._workers[name].requests for name in ids]

    def waiting(self, ids: Sequence[str]) -> list[int]:
        return [self._workers[name].waiting for name in ids]

    def kv_blocks(self, ids: Sequence[str]) -> list[int]:
        """Blocks of running requests."""
        return [self._workers[name].pool.locked for name in ids]

    def kv_share(self, ids: Sequence[str]) -> list[float]:
        """The same as a share of the pool."""
        pools = [self._workers[name].pool for name in ids]
        return [pool.locked / pool.capacity for pool in pools]
