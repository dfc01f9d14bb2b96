"""What follows from a column of candidates, kept as long as the same column comes."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Value = TypeVar("Value")
Column = Sequence[float | None]


class Derived(Generic[Value]):
    """Reports come now and then, and most decisions have the columns of the one before.

    A column of candidates is never changed in place.
    """

    def __init__(self, derive: Callable[[Column], Value]) -> None:
        self._derive = derive
        self._column: Column | None = None
        self._value: Value | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> "Derived[Value]":
        """O(1): it finds again what it needs."""
        return Derived(self._derive)

    def of(self, column: Column) -> Value:
        """O(1) if it is the very column of the last time."""
        value = self._value
        if value is None or column is not self._column:
            self._column, self._value = column, (value := self._derive(column))
        return value
