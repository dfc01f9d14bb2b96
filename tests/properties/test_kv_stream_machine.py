"""Log, wire, reader and mirror through a stream that loses, repeats and breaks: they converge."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from clocks import FakeClock
from radixgate.proto import kv_log, kv_wire
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_log import KvLog
from radixgate.proto.kv_updates import Digest
from radixgate.radix_mirror.feed import KvFeed
from radixgate.radix_mirror.mirror import RadixMirror

PATHS = ((1, 2, 3, 4), (1, 2, 5, 6), (1, 7, 8), (9, 10))
prompts = st.sampled_from([path[:length] for path in PATHS for length in range(1, 5)])
tiers = st.sampled_from(Tier)
events = st.one_of(
    st.builds(Stored, st.just(0), prompts, tiers),
    st.builds(Removed, prompts.map(lambda ids: ids[::-1]), tiers),
    st.builds(Pending, st.integers(0, 2), st.just(0), prompts),
    st.builds(Settled, st.integers(0, 2)),
)

# A busy machine makes drawing slow; that says nothing about the code.
SLOW = [HealthCheck.too_slow]


class KvStreamMachine(RuleBasedStateMachine):
    """The worker writes into a stream; what happens to it on its way is drawn."""

    def __init__(self) -> None:
        super().__init__()
        # Messages of two blocks, so that steps and snapshots come in several.
        self.small_messages = patch.object(kv_log, "MAX_WORDS", kv_log.EVENT_WORDS + 2)
        self.small_messages.start()
        self.epoch = 1
        self.log = KvLog(self.epoch, ring_updates=4)
        self.mirror = RadixMirror(FakeClock())
        self.mirror.add_worker("w")
        self.feed = KvFeed(self.mirror, "w")
        self.stream: deque[bytes] = deque()
        self.written = (0, 0)
        self._open()

    def _open(self) -> None:
        self.stream.clear()
        self.written = self.feed.restart()
        self._write()

    def _write(self) -> None:
        for update in self.log.since(*self.written):
            self.stream.append(kv_wire.update_to_pb(update).SerializeToString())
            self.written = (update.epoch, update.seq)

    @rule(step=st.lists(events, max_size=4))
    def work(self, step: Sequence[KvEvent]) -> None:
        self.log.record(step)
        self.log.check()
        self._write()

    @rule()
    def beat(self) -> None:
        beat = kv_wire.update_to_pb(self.log.heartbeat())
        self.stream.append(beat.SerializeToString())

    @rule()
    def flush(self) -> None:
        self.epoch += 1
        self.log.clear(self.epoch)
        self._write()

    @rule()
    def restart(self) -> None:
        self.epoch += 1
        self.log = KvLog(self.epoch, ring_updates=4)
        self._open()

    @rule(count=st.integers(1, 5))
    def deliver(self, count: int) -> None:
        for _ in range(count):
            if not self.stream:
                return
            message = pb.KvUpdate.FromString(self.stream.popleft())
            if self.feed.take(kv_wire.update_from_pb(message)):
                self._open()
            self.mirror.check()

    @rule()
    def lose(self) -> None:
        if self.stream:
            self.stream.popleft()

    @rule()
    def repeat(self) -> None:
        if self.stream:
            self.stream.appendleft(self.stream[0])

    @rule()
    def swap(self) -> None:
        if len(self.stream) > 1:
            self.stream[0], self.stream[1] = self.stream[1], self.stream[0]

    @rule()
    def break_off(self) -> None:
        self._open()

    @rule(forged=st.booleans())
    def restart_gateway(self, forged: bool) -> None:
        """It goes on from what it kept, which somebody may have touched."""
        kept = self.feed.kept()
        if kept is not None and forged:
            kept = replace(kept, stored={**kept.stored, Tier.HOST: [2**63]})
        self.mirror = RadixMirror(FakeClock())
        self.mirror.add_worker("w")
        self.feed = KvFeed(self.mirror, "w", kept)
        self._open()

    def teardown(self) -> None:
        try:
            self._converge()
        finally:
            self.small_messages.stop()

    def _converge(self) -> None:
        # Without further loss two heartbeats are enough: the first may find a difference, and its
        # resync delivers a whole snapshot.
        for _ in range(2):
            self.beat()
            while self.stream:
                self.deliver(5)
        assert self.mirror.blocks_of("w").complete
        reported = self.log.heartbeat().digests
        assert self.mirror.digests("w") == {tier: reported.get(tier, Digest()) for tier in Tier}


KvStreamMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=SLOW
)
TestKvStreamMachine = pytest.mark.slow(KvStreamMachine.TestCase)
