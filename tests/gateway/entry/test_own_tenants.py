"""Tenants at our own workers: their salt goes with the prompt, and what is busy is not broken."""

import json
import random
from collections.abc import Mapping, Sequence

import pytest

from clocks import FakeClock
from radixgate.errors import NoWorkerAvailable, RequestError, UnknownModel
from radixgate.fleet.fleet import Ask, Fleet, MirrorKey, Outcome, WorkerIdentity, WorkerState
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.attempt import PromptTokens
from radixgate.gateway.attempt.caller import ANYONE, Caller
from radixgate.gateway.choice.breakers import Breakers
from radixgate.gateway.choice.spared import Spared
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.policies.registry import make_policy
from radixgate.proto.generation import GenerationRequest

KEY = MirrorKey("toy", "tokens", 16)
RED, BLUE = (Caller(tenant=name, salted=True) for name in ("red", "blue"))


class Prompts:
    """Notes the salt that each prompt's blocks are named under."""

    def __init__(self) -> None:
        self.salts: list[str | None] = []

    async def read(
        self, model: str, generation: GenerationRequest, keys: Sequence[MirrorKey]
    ) -> tuple[PromptTokens, Mapping[MirrorKey, Sequence[int]]]:
        self.salts.append(generation.salt)
        return PromptTokens(()), {}


def own_fleet() -> Fleet:
    clock, rng = FakeClock(), random.Random(1)
    fleet = Fleet(make_policy("round_robin", clock, rng), clock, rng)
    for name in ("a", "b"):
        fleet.admit(
            WorkerIdentity(
                id=name,
                url=f"grpc://{name}",
                kind="grpc",
                model="toy",
                mirror=KEY,
                capacity_tokens=1_000,
                weights_id="t",
                instance_id="i",
                reports_kv=True,
            )
        )
        fleet.set_state(name, WorkerState.READY)
    return fleet


async def test_a_tenant_s_salt_goes_to_our_own_worker() -> None:
    prompts = Prompts()
    asking = Asking(own_fleet(), prompts, StoredResponses())
    body = {"model": "toy", "messages": [{"role": "user", "content": "hi"}]}
    forged = {**body, "cache_salt": RED.salt(b"")}
    sent = []
    for caller, values in ((RED, body), (BLUE, body), (BLUE, forged), (ANYONE, body)):
        question = await asking.read_own(
            b"/v1/chat/completions", json.dumps(values).encode(), caller
        )
        assert question.generation is not None
        sent.append(question.generation.salt)
        assert question.ask.tenant == caller.tenant
    assert sent == prompts.salts
    assert sent[3] is None
    assert len(set(sent)) == 4


async def test_our_own_workers_have_no_embeddings_and_the_answer_says_what_they_have() -> None:
    asking = Asking(own_fleet(), Prompts(), StoredResponses())
    body = b'{"model": "toy", "input": "a"}'
    assert asking.read(b"/v1/embeddings", body) is None
    with pytest.raises(RequestError, match=r"/v1/chat/completions, /v1/completions$") as refused:
        await asking.read_own(b"/v1/embeddings", body)
    assert refused.value.code == "unsupported_endpoint"


async def test_while_a_worker_may_yet_say_that_it_has_them_nothing_is_the_last_word() -> None:
    asking = Asking(own_fleet(), Prompts(), StoredResponses(), unheard_of=lambda: 2)
    with pytest.raises(NoWorkerAvailable, match=r"no /v1/embeddings so far, and of 2 it is not"):
        await asking.read_own(b"/v1/embeddings", b'{"model": "toy", "input": "a"}')


async def test_a_model_that_is_not_the_key_s_is_not_there() -> None:
    asking = Asking(own_fleet(), Prompts(), StoredResponses())
    caller = Caller(tenant="red", models=frozenset(("other",)))
    body = b'{"model": "toy", "messages": [{"role": "user", "content": "hi"}]}'
    with pytest.raises(UnknownModel, match=r"there are: $"):
        asking.read(b"/v1/chat/completions", body, caller)


def test_it_is_worth_waiting_only_if_everybody_asked_for_it() -> None:
    fleet = own_fleet()
    clock = FakeClock()
    breakers = Breakers(ReliabilityConfig(cb_failure_threshold=1), clock)
    choice = WorkerChoice(fleet, breakers, Spared(0.0, clock, random.Random(1)))
    assert choice.wait_s(Ask("toy", 10, {})) == 0.0
    choice.rest("a", 2.0)
    assert choice.wait_s(Ask("toy", 10, {})) == 0.0
    choice.rest("b", 1.0)
    assert choice.wait_s(Ask("toy", 10, {})) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("busy", "state"),
    [pytest.param(True, "closed", id="busy"), pytest.param(False, "open", id="broken")],
)
def test_busy_is_no_failure_to_the_breaker(busy: bool, state: str) -> None:
    fleet = own_fleet()
    clock = FakeClock()
    breakers = Breakers(ReliabilityConfig(cb_failure_threshold=1), clock)
    choice = WorkerChoice(fleet, breakers, Spared(0.0, clock, random.Random(1)))
    lease = choice.lease(Ask("toy", 10, {}), (), own_only=False)
    lease.close(Outcome.FAILED)
    choice.ended(lease, Outcome.FAILED, busy=busy)
    assert choice.breaker_of(lease.worker.id) == state
