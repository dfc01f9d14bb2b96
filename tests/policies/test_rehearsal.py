"""Asking a policy without asking it."""

import random
import threading

import pytest

from clocks import FakeClock
from columns import PROMPT, columns
from radixgate.errors import RadixgateError
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.registry import POLICIES, make_policy
from radixgate.policies.rehearsal import understudy, undrawn


@pytest.mark.parametrize("name", POLICIES)
def test_a_shared_random_source_is_as_it_was(name: str) -> None:
    rng = random.Random(3)
    policy = make_policy(name, FakeClock(), rng)
    fleet = columns(7)
    for _ in range(20):
        before = rng.getstate()
        with undrawn(rng):
            foretold = understudy(policy, rng).choose(PROMPT, fleet).index
        assert rng.getstate() == before
        assert policy.choose(PROMPT, fleet).index == foretold


@pytest.mark.parametrize("name", ["random", "power_of_two", "cache_aware", "kv_cost", "least_load"])
def test_the_copy_draws_from_the_source_that_it_is_given(name: str) -> None:
    rng = random.Random(3)
    policy = make_policy(name, FakeClock(), rng)
    before = rng.getstate()
    understudy(policy, rng).choose(PROMPT, columns(7))
    assert rng.getstate() != before


class Locked:
    """A policy with something that is one of a kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        with self._lock:
            return Choice(0, "first", lambda: [0.0] * len(candidates))


def test_a_policy_that_cannot_be_copied_is_named() -> None:
    with pytest.raises(RadixgateError, match="the policy Locked cannot be copied"):
        understudy(Locked(), random.Random(1))
