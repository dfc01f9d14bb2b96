"""Reading a client's JSON object: every wrong type becomes a RequestError that names the field."""

from array import array
from collections.abc import Collection, Mapping
from typing import TypeGuard, cast

import msgspec

from radixgate.errors import RequestError

MAX_TOKEN_ID = 2**32 - 1
LEAST_PRIORITY, MOST_PRIORITY = -(2**31), 2**31 - 1
# Of arrays and objects in one another. What reads a body afterwards may take a few frames a level
# (a template's tojson does), and Python has a thousand in all.
MAX_NESTING = 200
_NESTS = frozenset((dict, list))


def decode_object(body: bytes) -> dict[str, object]:
    """The JSON object of a request body. Raises RequestError if it is none, or nests too deep.

    O(len(body)); where there are brackets enough, each value is looked at besides, 25 ns.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RequestError(f"the body is not valid JSON: {exc}", param="body") from exc
    if not isinstance(value, dict):
        raise RequestError(f"the body must be a JSON object, not {kind_of(value)}", param="body")
    if (_are_many(b"[", body) or _are_many(b"{", body)) and _nests_too_deep(value):
        raise RequestError(f"the body nests deeper than {MAX_NESTING} levels", param="body")
    return value


class Fields:
    """Typed look-ups in one JSON object. `null` counts as absent, absent as None."""

    def __init__(self, values: Mapping[str, object], path: str = "") -> None:
        self._values = values
        self._path = path

    def path(self, name: str) -> str:
        """The name a client would find the field by: `sampling_params.top_p`."""
        return f"{self._path}.{name}" if self._path else name

    def raw(self, name: str) -> object:
        return self._values.get(name)

    def has_none(self, names: Collection[str]) -> bool:
        """None of these stands there. O(names)."""
        return self._values.keys().isdisjoint(names)

    def beyond(self, names: Collection[str]) -> list[str]:
        """Those that stand there and are none of these, in their order. O(fields)."""
        return [name for name in self._values if name not in names]

    # Of the names that are looked up for each request nearly all are absent: that is said first,
    # and without a further call.

    def text(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(name, "a string")

    def flag(self, name: str) -> bool | None:
        value = self._values.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self.wrong(name, "true or false")

    def number(self, name: str) -> float | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not is_number(value):
            raise self.wrong(name, "a number")
        try:
            return float(value)
        except OverflowError:
            raise self.wrong(name, "a number that a double can hold") from None

    def integer(self, name: str) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not is_number(value):
            raise self.wrong(name, "an integer")
        if isinstance(value, float) and not value.is_integer():
            raise RequestError(
                f"{self.path(name)} must be an integer, not {value}", param=self.path(name)
            )
        return int(value)

    def priority(self, name: str = "priority") -> int:
        """Higher runs first; absent is 0. As wide as the wire has it."""
        value = self.integer(name) or 0
        if not LEAST_PRIORITY <= value <= MOST_PRIORITY:
            raise RequestError(
                f"{self.path(name)} must be from {LEAST_PRIORITY} to {MOST_PRIORITY},"
                f" not {value!r:.24}",
                param=self.path(name),
            )
        return value

    def items(self, name: str) -> list[object] | None:
        value = self._values.get(name)
        if value is None or isinstance(value, list):
            return value
        raise self.wrong(name, "an array")

    def mapping(self, name: str) -> dict[str, object] | None:
        value = self._values.get(name)
        if value is None or isinstance(value, dict):
            return value
        raise self.wrong(name, "an object")

    def inner(self, name: str) -> "Fields":
        """The fields of a nested object; absent reads as an empty one."""
        return Fields(self.mapping(name) or {}, self.path(name))

    def strings(self, name: str) -> list[str] | None:
        """A string, or an array of strings."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(name, "a string or an array of strings")
        return list(value)

    def token_ids(self, name: str) -> "array[int] | None":
        value = self.items(name)
        return None if value is None else as_token_ids(value, self.path(name))

    def wrong(self, name: str, expected: str) -> RequestError:
        found = kind_of(self.raw(name))
        where = self.path(name)
        return RequestError(f"{where} must be {expected}, not {found}", param=where)

    def refuse(self, name: str, why: str) -> RequestError:
        """For what is well-formed but not supported: silence would be a wrong answer."""
        where = self.path(name)
        return RequestError(f"{where} {why}", param=where, code="unsupported")


def _are_many(bracket: bytes, body: bytes) -> bool:
    """So many that with another kind there could be more than MAX_NESTING. A find goes over text
    thirty times as fast as a count."""
    at = -1
    for _ in range(MAX_NESTING // 2):
        at = body.find(bracket, at + 1)
        if at < 0:
            return False
    return True


def _nests_too_deep(value: Mapping[str, object]) -> bool:
    """Level by level: a client must not choose how deep this recurs."""
    level: list[Collection[object]] = [value.values()]
    for _ in range(MAX_NESTING):
        # Most hold numbers and texts alone.
        nesting = [one for one in level if not _NESTS.isdisjoint(map(type, one))]
        level = [
            inner.values() if isinstance(inner, dict) else cast(list[object], inner)
            for one in nesting
            for inner in one
            if type(inner) in _NESTS
        ]
        if not level:
            return False
    return True


def as_token_ids(values: list[object], where: str, first: int = 0) -> "array[int]":
    """Token ids as an array of type 'I'; `first` is the place of the first of them. Raises
    RequestError naming the first that is none."""
    try:
        if bool in map(type, values):
            raise TypeError
        return array("I", values)  # type: ignore[arg-type]  # checked by array itself
    except (TypeError, OverflowError):
        named = enumerate(values, first)
        return array("I", [_token_id(value, f"{where}[{at}]") for at, value in named])


def _token_id(value: object, where: str) -> int:
    """JSON knows one kind of number: 5.0 is 5."""
    number = int(value) if type(value) is float and value.is_integer() else value
    if type(number) is not int or not 0 <= number <= MAX_TOKEN_ID:
        raise RequestError(f"{where} must be a token id, not {value!r:.40}", param=where)
    return number


def whole_number(value: object) -> int | None:
    """2 and 2.0 as clients write them; None: it is neither."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else None


def nearest_priority(value: object) -> int:
    """What a request for a foreign worker counts as, which may take more than the wire has; 0: it
    is no whole number."""
    return min(max(whole_number(value) or 0, LEAST_PRIORITY), MOST_PRIORITY)


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def kind_of(value: object) -> str:
    """What JSON calls it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {str: "a string", int: "a number", float: "a number", list: "an array"}
    return names.get(type(value), "an object")
