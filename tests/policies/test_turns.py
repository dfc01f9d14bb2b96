"""Whose turn it is."""

import random

import pytest

from radixgate.policies import turns
from radixgate.policies.turns import Turns

IDS = ["a", "b", "c"]


def rotation(made: Turns, among: list[int], times: int) -> list[str]:
    chosen = []
    for _ in range(times):
        index = made.next(IDS, among)
        made.took(IDS, index)
        chosen.append(IDS[index])
    return chosen


def test_all_take_turns_in_a_fixed_order() -> None:
    order = rotation(Turns(random.Random(1)), [0, 1, 2], 9)
    assert sorted(order[:3]) == IDS
    assert order == order[:3] * 3


def test_orders_differ_between_seeds() -> None:
    orders = {tuple(rotation(Turns(random.Random(seed)), [0, 1, 2], 3)) for seed in range(40)}
    assert len(orders) == 6


def test_a_turn_in_a_smaller_round_counts_in_the_larger() -> None:
    made = Turns(random.Random(1))
    rotation(made, [0, 1, 2], 3)
    made.took(IDS, 2)
    made.took(["c", "b"], 1)
    assert IDS[made.next(IDS, [0, 1, 2])] == "a"


class Level(random.Random):
    """Draws nothing but equal lots."""

    def random(self) -> float:
        return 0.5


def test_of_equal_lots_that_of_who_has_had_a_turn_does_not_count() -> None:
    made = Turns(Level())
    assert rotation(made, [0, 1, 2], 7) == [*"abcabca"]
    assert rotation(Turns(Level()), [1, 2], 2) == ["b", "c"]


def test_what_it_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_MAX_IDS", 4)
    made = Turns(random.Random(1))
    for name in "abcdae":
        made.took([name], 0)
    # b and c had waited longest and are as new as x; a's last turn counts, not its first.
    assert list(made._last) == ["d", "a", "e"]
    assert made.next(["d", "a", "b"], [0, 1, 2]) == 2
    assert made.next(["e", "a"], [0, 1]) == 1


def test_a_list_that_comes_again_is_as_good_as_a_new_one() -> None:
    same, anew = Turns(random.Random(1)), Turns(random.Random(1))
    draw = random.Random(2)
    others = [[*IDS], [*IDS, "d"], ["d", "b"]]
    ids = others[0]
    for _ in range(400):
        if draw.random() < 0.2:
            ids = draw.choice(others)
        some = len(ids) if draw.random() < 0.5 else draw.randint(1, len(ids))
        among = sorted(draw.sample(range(len(ids)), some))
        chosen = same.next(ids, among)
        assert anew.next([*ids], among) == chosen
        if draw.random() < 0.9:
            same.took(ids, chosen)
            anew.took([*ids], chosen)
        else:
            same.took(others[0], 1)
            anew.took([*others[0]], 1)
