"""Retries ask the budget; continuations are bounded by their own request."""

import random
from array import array

import pytest

from books import identity
from clocks import FakeClock
from items import item
from radixgate.fleet.fleet import Ask, Fleet, WorkerState
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.choice.another_try import FRESH_AFTER_TOKENS, AnotherTry
from radixgate.gateway.choice.breakers import Breakers
from radixgate.gateway.choice.retries import RetryRule
from radixgate.gateway.choice.retry_budget import ALWAYS, RetryBudget
from radixgate.gateway.choice.spared import Spared
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.observe.metrics import GatewayMetrics
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.policies.registry import make_policy
from radixgate.proto.generation import AnswerContext
from radixgate.proto.openai import parse_chat

RETRIES = 5
LONGEST_WAIT_S = 5.1
ASK = Ask("toy", 10, {})
CONTEXT = AnswerContext("r", "m", 0, lambda token: b"")


def another_try(*workers: str) -> AnotherTry:
    clock, rng = FakeClock(), random.Random(1)
    fleet = Fleet(make_policy("round_robin", clock, rng), clock, rng)
    for name in workers:
        fleet.admit(identity(name))
        fleet.set_state(name, WorkerState.READY)
    metrics = GatewayMetrics(lambda: [])
    choice = WorkerChoice(
        fleet, Breakers(ReliabilityConfig(), clock), Spared(0.0, clock, random.Random(1))
    )
    budget = RetryBudget(0.2, metrics, clock, Deadlines(clock))
    return AnotherTry(RetryRule(RETRIES, 0.05, LONGEST_WAIT_S), budget, choice, metrics, rng)


def test_a_thousand_streams_of_a_lost_worker_go_on_and_leave_the_budget_as_it_was() -> None:
    tries = another_try()
    waits = [tries.wait_s(["a"], ASK, begun(1), sent=True) for _ in range(1_000)]
    assert None not in waits
    assert (tries.metrics.continuations, tries.metrics.retries) == (1_000, 0)
    retried = [tries.wait_s(["a"], ASK, None, sent=False) for _ in range(ALWAYS + 5)]
    assert retried[ALWAYS:] == [None] * 5
    assert tries.metrics.retries == ALWAYS


def test_continuations_are_no_requests_to_the_budget() -> None:
    tries = another_try()
    tries.metrics.attempts = 10_000
    tries.metrics.continuations = 9_900
    waits = [tries.wait_s(["a"], ASK, None, sent=False) for _ in range(500)]
    assert waits.count(None) == 500 - ALWAYS


@pytest.mark.parametrize("tokens", [0, 1, FRESH_AFTER_TOKENS - 1])
def test_one_request_is_tried_so_often_and_no_more(tokens: int) -> None:
    tries, progress = another_try(), begun(tokens)
    workers = [str(number) for number in range(RETRIES + 1)]
    waits = []
    for failed in range(1, RETRIES + 2):
        waits.append(tries.wait_s(workers[:failed], ASK, progress, sent=tokens > 0))
        progress.open(CONTEXT, random.Random(1))
    assert [wait is None for wait in waits] == [False] * RETRIES + [True]


def test_an_attempt_that_brought_enough_is_the_first_again() -> None:
    tries = another_try()
    tried = ["a", "b", "c", "d", "e", "f"]
    assert tries.wait_s(tried, ASK, begun(FRESH_AFTER_TOKENS), sent=True) is not None
    assert tried == ["f"]


def test_nothing_is_repeated_that_was_seen_or_ended_by_order() -> None:
    tries = another_try()
    assert tries.wait_s(["a"], ASK, None, sent=True) is None
    assert tries.wait_s(["a"], ASK, begun(0), sent=True) is None
    ended = begun(5)
    ended.ended_by_order = True
    assert tries.wait_s(["a"], ASK, ended, sent=True) is None


@pytest.mark.parametrize(
    ("rest_s", "asked_for", "by_fault"),
    [
        pytest.param(0.3, 0.3, 0.3, id="shorter"),
        pytest.param(LONGEST_WAIT_S, 5.1, 5.1, id="as-long"),
        pytest.param(6.0, None, 5.1, id="longer"),
    ],
)
def test_a_rest_longer_than_the_longest_wait_ends_a_request_if_it_was_asked_for(
    rest_s: float, asked_for: float | None, by_fault: float
) -> None:
    tries = another_try("a")
    tries.choice.rest("a", rest_s)
    assert tries.wait_s(["a"], ASK, None, sent=False) == pytest.approx(asked_for)
    tries = another_try("a")
    tries.rest_by_fault("a", rest_s)
    assert tries.wait_s(["a"], ASK, None, sent=False) == pytest.approx(by_fault)


def begun(tokens: int) -> AnswerProgress:
    request = parse_chat({"messages": [{"role": "user", "content": "hi"}], "n": 2})
    progress = AnswerProgress(request, [array("I", [1])])
    progress.open(CONTEXT, random.Random(1))
    if tokens:
        progress.take(0, item("a", ids=[7] * tokens), 0)
    return progress


def test_what_an_attempt_brought_is_counted_from_its_beginning() -> None:
    progress = begun(FRESH_AFTER_TOKENS)
    progress.take(0, item("b", ids=[7], choice=1), 0)
    assert progress.brought == FRESH_AFTER_TOKENS + 1
    progress.open(CONTEXT, random.Random(1))
    assert progress.brought == 0
    progress.take(0, item("c", ids=[7]), FRESH_AFTER_TOKENS)
    assert progress.brought == 1
