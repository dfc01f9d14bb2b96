"""A file of what workers had reported: written whole, and believed only once it is proven."""

from pathlib import Path

import msgspec
import pytest

from clocks import FakeClock
from radixgate.proto import kv_log
from radixgate.proto.kv_events import Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_log import KvLog
from radixgate.radix_mirror import kept as kept_file
from radixgate.radix_mirror.feed import KvFeed
from radixgate.radix_mirror.kept import KeptBlocks, read_kept, write_kept
from radixgate.radix_mirror.mirror import RadixMirror

PROMPT = [2**64 - 1, 12, 13, 14]


class Life:
    """One gateway's mirror of one worker, from its start to its end."""

    def __init__(self, kept: KeptBlocks | None = None) -> None:
        self.mirror = RadixMirror(FakeClock())
        self.mirror.add_worker("a")
        self.feed = KvFeed(self.mirror, "a", kept)
        self.asked = self.feed.restart()
        self.at = self.asked

    def follow(self, log: KvLog) -> bool:
        """Take what is new, and the heartbeat; False: the stream is to be opened anew."""
        for update in (*log.since(*self.at), log.heartbeat()):
            if self.feed.take(update) is not None:
                self.at = self.feed.restart()
                return False
            self.at = (update.epoch, update.seq)
        return True

    @property
    def depth(self) -> int:
        return self.mirror.depths(PROMPT).get("a", 0)


def log_of(*blocks: int, ring_updates: int = 100) -> KvLog:
    log = KvLog(7, ring_updates=ring_updates)
    log.record([Stored(0, list(blocks))])
    return log


def first_life(log: KvLog) -> KeptBlocks:
    life = Life()
    assert life.follow(log)
    kept = life.feed.kept()
    assert kept is not None
    return kept


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    kept = first_life(log_of(*PROMPT))
    path = tmp_path / "mirror"
    write_kept(path, [kept])
    (read,) = read_kept(path).values()
    assert (read.worker_id, read.epoch, read.seq) == ("a", 7, 1)
    assert {tier: set(ids) for tier, ids in read.stored.items()} == {
        Tier.DEVICE: set(PROMPT),
        Tier.HOST: set(),
        Tier.STORAGE: set(),
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_no_file_is_an_empty_one_and_another_s_is_refused(tmp_path: Path) -> None:
    assert read_kept(tmp_path / "none") == {}
    other = tmp_path / "other"
    other.write_bytes(b"no mirror")
    with pytest.raises(msgspec.MsgspecError):
        read_kept(other)
    other.write_bytes(msgspec.msgpack.encode([2, []]))
    with pytest.raises(ValueError, match="of version 2, and 1 is read"):
        read_kept(other)


def test_a_file_too_large_to_be_one_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_file, "_MOST_BYTES", 8)
    large = tmp_path / "large"
    large.write_bytes(bytes(9))
    with pytest.raises(ValueError, match="9 bytes are more than such a file can have"):
        read_kept(large)


def test_it_is_believed_with_the_first_heartbeat_and_not_before() -> None:
    log = log_of(*PROMPT[:2])
    kept = first_life(log)
    log.record([Stored(PROMPT[1], PROMPT[2:]), Pending(1, 0, [99])])
    life = Life(kept)
    assert life.asked == (7, 1)  # no snapshot is asked for
    (step,) = log.since(7, 1)
    assert life.feed.take(step) is None
    assert life.depth == 0
    assert life.feed.kept() is None
    assert life.feed.take(log.heartbeat()) is None
    assert life.depth == 4
    assert life.mirror.blocks_of("a").pending_prompts == 1
    assert life.mirror.blocks_of("a").complete
    life.mirror.check()
    # From now on it is as any other.
    log.record([Removed(PROMPT[3:])])
    life.at = (7, 2)
    assert life.follow(log)
    assert life.depth == 3
    again = life.feed.kept()
    assert again is not None
    assert (again.epoch, again.seq, set(again.stored[Tier.DEVICE])) == (7, 3, set(PROMPT[:3]))


def test_removed_and_settled_meanwhile_is_not_there() -> None:
    log = log_of(*PROMPT)
    kept = first_life(log)
    log.record([Pending(1, 0, [99])])
    log.record([Settled(1), Removed(PROMPT[3:])])
    life = Life(kept)
    assert life.follow(log)
    assert life.depth == 3
    assert life.mirror.blocks_of("a").pending_prompts == 0


def test_what_the_digest_does_not_confirm_is_never_believed() -> None:
    log = log_of(*PROMPT)
    kept = first_life(log)
    forged = KeptBlocks("a", kept.epoch, kept.seq, {Tier.DEVICE: [*PROMPT, 15]})
    life = Life(forged)
    assert not life.follow(log)
    assert life.depth == 0
    assert life.at == (0, 0)
    assert life.follow(log)
    assert life.depth == 4
    assert life.feed.resyncs == {"digest": 1}


def test_a_worker_that_began_anew_sends_a_snapshot() -> None:
    kept = first_life(log_of(*PROMPT))
    reborn = KvLog(8)
    reborn.record([Stored(0, PROMPT[:1])])
    life = Life(kept)
    assert life.follow(reborn)
    assert life.depth == 1
    life.mirror.check()


def test_a_position_that_the_ring_has_passed_by_costs_a_snapshot() -> None:
    log = log_of(*PROMPT[:1], ring_updates=2)
    kept = first_life(log)
    for block in PROMPT[1:]:
        log.record([Stored(0, [block])])
    life = Life(kept)
    assert life.follow(log)
    assert life.depth == 4


def test_half_a_snapshot_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life()
    assert life.feed.kept() is None
    monkeypatch.setattr(kv_log, "MAX_WORDS", kv_log.EVENT_WORDS + 2)
    log = log_of(*PROMPT[:2], ring_updates=1)
    assert life.follow(log)
    assert life.feed.kept() is not None
    for block in PROMPT[2:]:
        log.record([Stored(0, [block])])
    # The ring has passed it by: a snapshot comes, of the epoch that it knows.
    first, *others = log.since(*life.at)
    assert others
    assert life.feed.take(first) is None
    assert life.feed.kept() is None
    for part in others:
        assert life.feed.take(part) is None
    assert life.feed.kept() is not None
