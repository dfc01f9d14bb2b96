"""The two streams by which a worker of ours tells what it caches and how loaded it is."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from radixgate.clock import Clock
from radixgate.errors import WorkerFailed
from radixgate.fleet.fleet import Fleet
from radixgate.fleet.load_report import report_from_pb
from radixgate.gateway.observe.watch_counts import WatchCounts
from radixgate.gateway.upstream.reconnect_pause import ReconnectPause
from radixgate.gateway.upstream.watch import Watch, WatchLine
from radixgate.gateway.workers.mirror_file import MirrorFile
from radixgate.log import fields
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_wire import update_from_pb
from radixgate.radix_mirror.feed import KvFeed
from radixgate.radix_mirror.kept import KeptBlocks

# By the name of the method, and what takes its messages.
DialWatch = Callable[[str, Callable[[bytes], None]], WatchLine]
_log = logging.getLogger(__name__)


class WorkerWatches:
    """Keeps both streams of one worker open; run `kv` and `load` while it is in the fleet.

    Each has a connection of its own, read in the loop: a busy worker tells of every step, and to be
    woken by gRPC's threads costs ten times what is done with a message.
    """

    def __init__(
        self,
        dial: DialWatch,
        worker_id: str,
        fleet: Fleet,
        gateway_id: str,
        mirror_file: MirrorFile,
        counts: WatchCounts,
        clock: Clock,
    ) -> None:
        self._dial = dial
        self._worker_id = worker_id
        self._fleet = fleet
        self._gateway_id = gateway_id
        self._mirror_file = mirror_file
        self._counts = counts
        self._clock = clock

    async def kv(self) -> None:
        """Feeds the mirror; a resync opens the stream anew where the reader stands."""
        worker_id, resyncs = self._worker_id, self._counts.resyncs
        feed = self._feed(self._mirror_file.take(worker_id))

        def request() -> bytes:
            epoch, seq = feed.restart()
            return pb.WatchKvRequest(epoch=epoch, seq=seq).SerializeToString()

        def take(message: bytes) -> bool:
            resync = feed.take(update_from_pb(pb.KvUpdate.FromString(message)))
            if resync is None:
                return False
            resyncs[resync.cause] += 1
            _log.info("mirror resync", extra=fields(worker=worker_id, cause=resync.cause))
            return True

        def start_over() -> None:
            """What half an update has left in mirror and reader is made good by a snapshot."""
            nonlocal feed
            feed = self._feed(None)
            resyncs["fault"] += 1

        await self._for_ever("WatchKv", request, take, start_over)

    async def load(self) -> None:
        """Enters each report in the fleet's books."""
        request = pb.WatchLoadRequest(gateway_id=self._gateway_id).SerializeToString()

        def take(message: bytes) -> bool:
            report = report_from_pb(pb.LoadReport.FromString(message))
            self._fleet.report_load(self._worker_id, report)
            return False

        await self._for_ever("WatchLoad", lambda: request, take, _as_it_is)

    def _feed(self, kept: KeptBlocks | None) -> KvFeed:
        feed = KvFeed(self._fleet.mirror_of(self._worker_id), self._worker_id, kept)
        self._mirror_file.follow(self._worker_id, feed)
        return feed

    async def _for_ever(
        self,
        method: str,
        request: Callable[[], bytes],
        take: Callable[[bytes], bool],
        start_over: Callable[[], None],
    ) -> None:
        """`start_over`: before it is asked again, where a fault of ours has kept a message from
        being taken whole."""
        pause = ReconnectPause(self._clock)
        worker_id, faulty = self._worker_id, False
        while True:
            pause.begin()
            watch = Watch(partial(self._dial, method), take)
            try:
                why = await watch.run(request())
                faulty = False
                _log.debug("watch ended", extra=fields(worker=worker_id, error=why))
            except WorkerFailed as exc:
                _log.warning("watch failed", extra=fields(worker=worker_id, error=exc.message))
            except Exception as exc:
                # It must not end the requests at this worker, nor leave it unwatched. Of a fault
                # that comes with every message one traceback will do.
                _log.error(
                    "a worker's news could not be taken",
                    exc_info=None if faulty else exc,
                    extra=fields(worker=worker_id, watch=method, error=repr(exc)),
                )
                faulty = True
                self._counts.faults[method] += 1
                start_over()
            await asyncio.sleep(pause.end())


def _as_it_is() -> None:
    """Each report says all there is."""
