"""What follows from a column is found once a column."""

import copy
from collections.abc import Sequence

from radixgate.policies.derived import Derived


class Counted:
    def __init__(self) -> None:
        self.asked = 0

    def total(self, column: Sequence[float | None]) -> float:
        self.asked += 1
        return sum(filter(None, column))


def test_the_same_column_is_looked_at_once_and_another_anew() -> None:
    counted = Counted()
    derived, column = Derived(counted.total), [1.0, None, 2.0]
    assert [derived.of(column) for _ in range(3)] == [3.0] * 3
    assert counted.asked == 1
    assert derived.of([5.0]) == 5.0
    assert derived.of([]) == 0.0
    assert derived.of(column) == 3.0
    assert counted.asked == 4


def test_the_first_column_may_be_an_empty_one() -> None:
    derived = Derived(lambda column: len(column))
    assert derived.of(()) == 0


def test_a_copy_finds_for_itself() -> None:
    derived = Derived(lambda column: len(column))
    column = (1.0,)
    derived.of(column)
    assert copy.deepcopy(derived).of(column) == 1
