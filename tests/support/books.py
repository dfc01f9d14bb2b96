"""A fleet for tests: workers by name, prompts by text, one token and one block a character."""

import random
from array import array
from collections.abc import Collection
from dataclasses import replace

from clocks import FakeClock
from radixgate.fleet.fleet import (
    Ask,
    Fleet,
    FleetConfig,
    Lease,
    LoadReport,
    MirrorKey,
    WorkerIdentity,
    WorkerState,
)
from radixgate.policies.base import Policy
from radixgate.policies.cache_aware import CacheAwareConfig, cache_aware
from radixgate.proto.blocks import chain, root_id
from radixgate.radix_mirror.worker_blocks import WorkerBlocks

MODEL = "toy"
KEY = MirrorKey(MODEL, "tokens", 1)


def identity(
    name: str,
    *,
    model: str = MODEL,
    key: MirrorKey | None = None,
    capacity: int | None = None,
    reports_kv: bool = True,
) -> WorkerIdentity:
    return WorkerIdentity(
        id=name,
        url=f"grpc://{name}",
        kind="grpc",
        model=model,
        mirror=key or MirrorKey(model, "tokens", 1),
        capacity_tokens=capacity,
        weights_id=model,
        instance_id=name,
        reports_kv=reports_kv,
    )


IDLE = LoadReport(
    running=0,
    waiting=0,
    queued_uncached_tokens=0,
    queued_uncached_tokens_yours=0,
    kv_tokens_used=0,
    kv_tokens_evictable=0,
    kv_tokens_total=0,
    prefill_tokens_total=0,
    prefill_busy_us_total=0,
)


def report(**of: int | None) -> LoadReport:
    """An idle worker's report, but for what is given."""
    return replace(IDLE, **of)  # type: ignore[arg-type]


def ids_of(text: str, salt: str | None = None, block: int = 1) -> "array[int]":
    return chain(root_id(MODEL, None, salt), array("I", map(ord, text)), block)


def ask(text: str, *, model: str | None = MODEL, salt: str | None = None) -> Ask:
    return Ask(model, len(text), {KEY: ids_of(text, salt)}, fingerprint=hash(text) or 1)


class Books:
    """A fleet of ready workers and a clock."""

    def __init__(
        self,
        *names: str,
        policy: Policy | None = None,
        knobs: CacheAwareConfig | None = None,
        reports_kv: bool = True,
        seed: int = 1,
        config: FleetConfig | None = None,
    ) -> None:
        self.clock = FakeClock()
        policy = policy or cache_aware(knobs or CacheAwareConfig(), random.Random(seed))
        self.fleet = Fleet(policy, self.clock, random.Random(seed), config)
        self._reports_kv = reports_kv
        for name in names:
            self.join(name)

    def join(self, name: str) -> None:
        self.fleet.admit(identity(name, reports_kv=self._reports_kv))
        self.fleet.set_state(name, WorkerState.READY)

    def lease(self, text: str, exclude: Collection[str] = (), *, salt: str | None = None) -> Lease:
        return self.fleet.lease(ask(text, salt=salt), exclude)

    def warm(self, text: str, name: str) -> None:
        """The worker holds the text, as it does after having answered it."""
        mirror = self.fleet.mirror_of(name)
        placement = mirror.expect(name, ids_of(text), keep_s=1e9)
        assert placement is not None
        mirror.answered(placement)
        mirror.settle(placement, None)

    def blocks_of(self, name: str) -> WorkerBlocks:
        """What the mirror holds of it."""
        return self.fleet.mirror_of(name).blocks_of(name)

    def counts(self, name: str) -> tuple[int, int]:
        """(requests, uncached tokens) in flight."""
        view = self.fleet.worker(name)
        assert view is not None
        return view.in_flight, view.uncached_tokens_in_flight
