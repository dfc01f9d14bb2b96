"""The two streams by which a worker of ours tells what it caches and how loaded it is."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import grpc

from radixgate.errors import WorkerFailed
from radixgate.fleet.fleet import Fleet
from radixgate.fleet.load_report import report_from_pb
from radixgate.gateway.upstream.attach import RECONNECT_FIRST_S, RECONNECT_MOST_S
from radixgate.gateway.workers.mirror_file import MirrorFile
from radixgate.log import fields
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.proto.kv_wire import update_from_pb
from radixgate.radix_mirror.feed import KvFeed

_log = logging.getLogger(__name__)


class WorkerWatches:
    """Keeps both streams of one worker open; run `kv` and `load` while it is in the fleet."""

    def __init__(
        self,
        stub: rpc.WorkerStub,
        worker_id: str,
        fleet: Fleet,
        gateway_id: str,
        mirror_file: MirrorFile,
    ) -> None:
        self._stub = stub
        self._worker_id = worker_id
        self._fleet = fleet
        self._gateway_id = gateway_id
        self._mirror_file = mirror_file

    async def kv(self) -> None:
        """Feeds the mirror; a resync opens the stream anew where the reader stands."""
        mirror, worker_id = self._fleet.mirror_of(self._worker_id), self._worker_id
        feed = KvFeed(mirror, worker_id, self._mirror_file.take(worker_id))
        self._mirror_file.follow(worker_id, feed)

        async def follow() -> None:
            epoch, seq = feed.restart()
            request = pb.WatchKvRequest(epoch=epoch, seq=seq)
            async for message in self._stub.WatchKv(request):
                resync = feed.take(update_from_pb(message))
                if resync is not None:
                    _log.info(
                        "mirror resync",
                        extra=fields(worker=self._worker_id, cause=resync.cause),
                    )
                    return

        await self._for_ever(follow)

    async def load(self) -> None:
        """Enters each report in the fleet's books."""

        async def follow() -> None:
            request = pb.WatchLoadRequest(gateway_id=self._gateway_id)
            async for message in self._stub.WatchLoad(request):
                self._fleet.report_load(self._worker_id, report_from_pb(message))

        await self._for_ever(follow)

    async def _for_ever(self, follow: Callable[[], Awaitable[None]]) -> None:
        pause_s = RECONNECT_FIRST_S
        while True:
            try:
                await follow()
                pause_s = RECONNECT_FIRST_S
            except grpc.aio.AioRpcError as exc:
                _log.debug(
                    "watch ended",
                    extra=fields(worker=self._worker_id, error=exc.code().name),
                )
            except WorkerFailed as exc:
                _log.warning(
                    "watch failed", extra=fields(worker=self._worker_id, error=exc.message)
                )
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RECONNECT_MOST_S)
