"""An ear on the loop's thread."""

import asyncio

from radixgate.proto.generated import worker_pb2 as pb
from small_engine import Ear


class LoopEar(Ear):
    """An ear that can be waited for; counts how often it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0
        self._heard = asyncio.Event()

    def deliver(self, batch: pb.StepBatch) -> None:
        self.batches += 1
        super().deliver(batch)
        self._heard.set()

    async def until_ended(self, *handles: int) -> None:
        """Each of them has finished (choice 0) or was refused."""
        while any(self.finish(h) is None and h not in self.refused for h in handles):
            await self._next()

    async def until_tokens(self, handle: int, tokens: int) -> None:
        while len(self.ids(handle)) < tokens:
            await self._next()

    async def _next(self) -> None:
        self._heard.clear()
        await self._heard.wait()
