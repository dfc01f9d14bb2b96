"""The rotation."""

import random

from columns import PROMPT, columns
from radixgate.policies.round_robin import RoundRobin


def rotation(policy: RoundRobin, ids: str, times: int) -> str:
    fleet = columns(len(ids), ids=list(ids))
    return "".join(ids[policy.choose(PROMPT, fleet).index] for _ in range(times))


def test_every_worker_is_chosen_once_a_round() -> None:
    order = rotation(RoundRobin(random.Random(1)), "abcd", 12)
    assert sorted(order[:4]) == list("abcd")
    assert order == order[:4] * 3


def test_a_worker_that_leaves_shifts_nobodys_turn() -> None:
    policy = RoundRobin(random.Random(1))
    first = rotation(policy, "abcd", 4)
    without = first.replace("b", "")
    assert rotation(policy, "acd", 3) == without
    assert rotation(policy, "abcd", 4) == "b" + without


def test_the_chosen_has_the_lowest_score() -> None:
    choice = RoundRobin(random.Random(1)).choose(PROMPT, columns(3))
    assert choice.explain()[choice.index] < min(
        score for index, score in enumerate(choice.explain()) if index != choice.index
    )
