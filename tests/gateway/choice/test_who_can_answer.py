"""Who is left out before the policy chooses, as it could not answer if it was asked."""

import random
from dataclasses import replace

import pytest

from attached_gateway import join_attached
from attached_worker import AttachedWorker
from books import identity
from clocks import FakeClock
from foreign_asking import KEY, NoPrompts
from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.fleet import Ask, Fleet, WorkerState
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.choice.breakers import Breakers
from radixgate.gateway.choice.spared import Spared
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.policies.registry import make_policy
from scripted_worker import Recorded, ScriptedWorker, Step, chat_answer, json_answer
from small_gateway import small_gateway

CHATS = b"/v1/chat/completions"
HI = b'{"model": "toy", "messages": [{"role": "user", "content": "hi"}]}'


def mixed_fleet(*ours: str) -> Fleet:
    """Of the model `toy`: `a` and `b` are foreign, `b` has an adapter."""
    clock, rng = FakeClock(), random.Random(1)
    fleet = Fleet(make_policy("round_robin", clock, rng), clock, rng)
    for name in ("a", "b"):
        foreign = identity(name, model="toy", key=KEY, reports_kv=False)
        adapters = ("sql",) if name == "b" else ()
        fleet.admit(replace(foreign, kind="http", adapters=adapters))
        fleet.set_state(name, WorkerState.READY)
    join_ours(fleet, *ours)
    return fleet


def join_ours(fleet: Fleet, *names: str) -> None:
    for name in names:
        fleet.admit(replace(identity(name, model="toy"), kind="grpc"))
        fleet.set_state(name, WorkerState.READY)


def choice_of(fleet: Fleet) -> WorkerChoice:
    clock = FakeClock()
    spared = Spared(0.0, clock, random.Random(1))
    return WorkerChoice(fleet, Breakers(ReliabilityConfig(), clock), spared)


def chosen(choice: WorkerChoice, ask: Ask, tried: tuple[str, ...] = ()) -> set[str]:
    return {choice.lease(ask, tried, own_only=False).worker.id for _ in range(8)}


@pytest.mark.parametrize(
    ("ask", "tried", "workers"),
    [
        pytest.param(Ask("toy", 9, {}), (), {"a", "b", "ours"}, id="read-for-all"),
        pytest.param(Ask("toy", 9, {}, foreign=True), (), {"a", "b"}, id="not-read-for-ours"),
        pytest.param(Ask("toy", 9, {}, foreign=True), ("a",), {"b"}, id="tried"),
        pytest.param(Ask("toy", 9, {}, foreign=True), ("a", "b"), {"a", "b"}, id="all-tried"),
        pytest.param(Ask("toy", 9, {}, adapters=("sql",)), (), {"b"}, id="an-adapter"),
        pytest.param(Ask("toy", 9, {}, adapters=("sql",)), ("b",), {"b"}, id="the-only-one-tried"),
    ],
)
def test_who_could_not_answer_is_never_asked(
    ask: Ask, tried: tuple[str, ...], workers: set[str]
) -> None:
    assert chosen(choice_of(mixed_fleet("ours")), ask, tried) == workers


def test_nobody_is_left_for_an_adapter_that_was_unloaded() -> None:
    fleet = mixed_fleet()
    fleet.remove("b")
    with pytest.raises(NoWorkerAvailable):
        choice_of(fleet).lease(Ask("toy", 9, {}, adapters=("sql",)), (), own_only=False)


def test_the_wait_is_that_of_those_who_could_answer() -> None:
    choice = choice_of(mixed_fleet("ours"))
    choice.rest("b", 2.0)
    assert choice.wait_s(Ask("toy", 9, {}, foreign=True)) == 0.0
    assert choice.wait_s(Ask("toy", 9, {}, adapters=("sql",))) == pytest.approx(2.0)


def test_ours_may_come_and_go() -> None:
    fleet = mixed_fleet()
    choice, ask = choice_of(fleet), Ask("toy", 9, {}, foreign=True)
    question = Asking(fleet, NoPrompts(), StoredResponses()).read(CHATS, HI)
    assert question is not None
    assert question.ask.foreign
    join_ours(fleet, "ours")
    assert chosen(choice, ask) == chosen(choice, question.ask) == {"a", "b"}
    fleet.remove("ours")
    assert fleet.served.own == frozenset()
    assert chosen(choice, ask) == {"a", "b"}


async def test_a_worker_of_ours_that_joins_meanwhile_is_not_the_next_one_tried() -> None:
    async with (
        ScriptedWorker() as foreign,
        AttachedWorker() as ours,
        small_gateway([foreign]) as gateway,
    ):

        def fail_first(request: Recorded) -> list[Step]:
            if len(foreign.requests) > 1:
                return chat_answer()
            join_attached(gateway.gateway, ours.stream, "ours")
            return json_answer({}, 503)

        foreign.script = fail_first
        reply = await gateway.chat()
        assert (reply.status, len(foreign.requests)) == (200, 2)
        gateway.gateway.fleet.remove("ours")
