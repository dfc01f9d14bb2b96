"""Asking of a fleet that has one foreign worker, of the model `toy`."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from books import identity
from clocks import FakeClock
from radixgate.fleet.fleet import Fleet, MirrorKey, WorkerState
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.attempt import PromptTokens
from radixgate.policies.registry import make_policy
from radixgate.proto.generation import GenerationRequest

KEY = MirrorKey("toy", "bytes", 0)


class NoPrompts:
    """No worker of ours is there."""

    async def read(
        self, model: str, generation: GenerationRequest, keys: Sequence[MirrorKey]
    ) -> tuple[PromptTokens, Mapping[MirrorKey, Sequence[int]]]:
        raise AssertionError(model)


def foreign_fleet() -> Fleet:
    clock, rng = FakeClock(), random.Random(1)
    fleet = Fleet(make_policy("round_robin", clock, rng), clock, rng)
    fleet.admit(replace(identity("a", model="toy", key=KEY, reports_kv=False), kind="http"))
    fleet.set_state("a", WorkerState.READY)
    return fleet


def new_asking() -> Asking:
    return Asking(foreign_fleet(), NoPrompts(), StoredResponses())
