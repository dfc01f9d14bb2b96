"""One worker's stream, applied to the mirror until it cannot be followed."""

from clocks import FakeClock
from radixgate.proto.kv_events import Stored
from radixgate.proto.kv_log import KvLog
from radixgate.proto.kv_updates import KvStep
from radixgate.radix_mirror.feed import KvFeed
from radixgate.radix_mirror.mirror import RadixMirror

PROMPT = [11, 12, 13]


def mirror_with(worker: str) -> RadixMirror:
    mirror = RadixMirror(FakeClock())
    mirror.add_worker(worker)
    return mirror


def follow(log: KvLog, feed: KvFeed) -> None:
    for update in log.since(*feed.restart()):
        assert feed.take(update) is None


def test_the_mirror_holds_what_the_log_holds() -> None:
    log, mirror = KvLog(7), mirror_with("a")
    feed = KvFeed(mirror, "a")
    log.record([Stored(0, PROMPT[:2])])
    follow(log, feed)
    log.record([Stored(12, PROMPT[2:])])
    follow(log, feed)
    assert mirror.depths(PROMPT) == {"a": 3}
    assert mirror.blocks_of("a").complete
    told = feed.updates
    for _ in range(3):
        assert feed.take(log.heartbeat()) is None
    assert feed.updates == told + 3 > 4


def test_resyncs_are_counted_by_cause() -> None:
    log, mirror = KvLog(7), mirror_with("a")
    feed = KvFeed(mirror, "a")
    follow(log, feed)
    for _ in range(2):
        resync = feed.take(KvStep(7, 9, ()))
        assert resync is not None
        assert resync.cause == "gap"
        follow(log, feed)
    mirror.apply("a", 7, [Stored(0, PROMPT)])
    resync = feed.take(log.heartbeat())
    assert resync is not None
    assert resync.cause == "digest"
    assert feed.resyncs == {"gap": 2, "digest": 1}
    follow(log, feed)
    assert mirror.depths(PROMPT) == {}


def test_a_feed_of_a_removed_worker_has_no_effect() -> None:
    log, mirror = KvLog(7), mirror_with("a")
    feed = KvFeed(mirror, "a")
    follow(log, feed)
    mirror.remove_worker("a")
    mirror.add_worker("a")
    log.record([Stored(0, PROMPT)])
    for update in (*log.since(7, 0), *log.since(0, 0)):
        assert feed.take(update) is None
    assert mirror.depths(PROMPT) == {}
    assert mirror.blocks_of("a").epoch is None
