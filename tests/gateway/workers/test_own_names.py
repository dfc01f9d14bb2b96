"""Gateways of one seed have names of their own; a source that is given repeats them."""

import random

from clocks import FakeClock
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.data_path import DataPath, Rules
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.rules import NO_RULES
from radixgate.gateway.workers.own_names import OwnNames
from radixgate.policies.registry import PolicyConfigs
from scripted_worker import ScriptedWorker
from small_gateway import small_gateway

SEED = 3


def data_path(names: OwnNames | None = None) -> DataPath:
    clock, rng = FakeClock(), random.Random(SEED)
    rules = Rules(GatewayConfig(seed=SEED), NO_RULES, KeyRing.of(NO_RULES.access))
    own = own_policy("random", PolicyConfigs(), clock, rng)
    return DataPath(rules, own, clock, rng, names=names)


def shown(names: OwnNames) -> tuple[str, str, str]:
    return names.gateway_id, names.request_ids.make(), names.new_rid()


def test_two_gateways_of_one_seed_share_no_name() -> None:
    one, two = shown(data_path().names), shown(data_path().names)
    assert all(ours != theirs for ours, theirs in zip(one, two, strict=True))


def test_a_source_that_is_given_repeats_its_names() -> None:
    names = [OwnNames(random.Random(1)) for _ in range(2)]
    assert data_path(names[0]).names is names[0]
    assert shown(names[0]) == shown(names[1])


def test_of_one_source_no_two_requests_have_one_name() -> None:
    names = OwnNames(random.Random(1))
    assert len({names.request_ids.make() for _ in range(100)}) == 100
    assert len({names.new_rid() for _ in range(100)}) == 100


async def test_two_gateways_of_one_seed_answer_with_different_request_ids() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], seed=SEED) as one,
        small_gateway([worker], seed=SEED) as two,
    ):
        answers = [await gateway.chat() for gateway in (one, two)]
    assert len({answer.header("x-request-id") for answer in answers}) == 2
