"""JSON that is too long to be read in one call, which would keep the interpreter to itself.

It is looked at in slices, between which other threads get their turn. What comes here has been seen
to be JSON, or is refused elsewhere if it is none.
"""

import re
from array import array

import msgspec

from radixgate.proto.fields import as_token_ids

_SLICE_BYTES = 65_536
# Up to an unescaped quote, or the slice's end. Nothing is tried twice, whatever its length.
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_IN_STRING_BYTES = 4_096
# A whole item that is an object of strings and numbers, as a message is, with the comma behind it.
_PLAIN_ITEM = re.compile(
    rb'\s*+\{(?:[^"{}\[\]]*+"(?:[^"\\]++|\\.)*+")*+[^"{}\[\]]*+\}\s*+,', re.DOTALL
)
_PLAIN_ITEM_BYTES = 4_096
_STEP = re.compile(rb'["\[\]{},]')
# Of an array that is cut, 50 ms of steps at most.
_MOST_STEPS = 131_072
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
_NUMBER = re.compile(rb"\s*+:\s*+(-?[0-9]{1,18})(?:\.0+)?\s*+[,}]")
_IS_NAME = re.compile(rb"\s*+:")  # the string before; else it is a value
# An outer field is looked for so far from either end of an object.
_NEAR_BYTES = 16_384
# And by a walk, whose costs are in microseconds, about.
_MOST_WALK = 2_000
_QUOTES_COST = 64  # of 4 KB of a text that has quotes
_MOST_BACKSLASHES = 64  # in a row
_MARK, _MARKS = re.compile(rb'["\[\]{}]'), (b'"', b"[", b"]", b"{", b"}")
_LEAP_BYTES = 256  # numbers that go on for longer are leapt over
_NUMBER_BYTES, _TEXT_BYTES = 1_000, 4_000  # that one step of the walk takes
_VALUE_BYTES = 64  # in which an integer ends behind its name: blanks may go on for megabytes
_decode = msgspec.json.decode


def string_end(text: bytes, start: int) -> int:
    """Where the quote is that ends the string whose first byte is at `start`; -1: nowhere."""
    at = start
    while True:
        quote = text.find(b'"', at)
        if quote < 0 or not _is_escaped(text, at, quote):
            return quote
        # Where one is, more will be, and a find of each takes longer.
        run = _IN_STRING.match(text, quote + 1, quote + 1 + _IN_STRING_BYTES)
        at = run.end() if run else quote + 1


def _is_escaped(text: bytes, at: int, quote: int) -> bool:
    """By an odd number of backslashes, of which the first is not before `at`."""
    backslashes, end = 0, quote
    while end > at:
        piece = text[max(at, end - _SLICE_BYTES) : end]
        here = len(piece) - len(piece.rstrip(b"\\"))
        backslashes += here
        if here < len(piece):
            break
        end -= here
    return backslashes % 2 == 1


def first_items(written: bytes, most: int) -> bytes | None:
    """An array's first items, at most so many, as an array; the whole of it if it has no more.

    Fewer if they are large in themselves; None: not even the first one's end has been seen.
    """
    at = written.index(b"[") + 1
    items = steps = depth = end = 0
    while items < most and steps < _MOST_STEPS:
        steps += 1
        if not depth and (plain := _PLAIN_ITEM.match(written, at, at + _PLAIN_ITEM_BYTES)):
            at, items = plain.end(), items + 1
            end = at - 1
            continue
        step = _STEP.search(written, at)
        if step is None:
            return written
        at, found = step.end(), step[0]
        if found == b'"':
            at = string_end(written, at) + 1
            if not at:
                return written
        elif found == b",":
            if not depth:
                items, end = items + 1, at - 1
        elif found in b"[{":
            depth += 1
        else:
            depth -= 1
            if depth < 0:
                return written
    return written[:end] + b"]" if items else None


def outer_integer(written: bytes, name: bytes) -> int | None:
    """The value of a field of the object itself, if that is an integer and stands near its begin or
    its end, or between long fields that are quickly passed over; at most 4 ms."""
    key = b'"%b"' % name
    tail = written[-_NEAR_BYTES:]
    at = tail.find(key)
    while at > 0 and _is_escaped(tail, 0, at):
        at = tail.find(key, at + 1)
    if at >= 0:
        # How deep it begins shows at the end, which is outside of everything.
        depth, last, seen = _depths(tail, at, key)
        for here, value in reversed(seen):
            if here == depth + 1 and not last:
                return value
    head = written[:_NEAR_BYTES]
    if key in head:
        _, _, seen = _depths(head, 0, key)
        near = next((value for here, value in reversed(seen) if here == 1), None)
        if near is not None:
            return near
    return _walked_to(written, key)


def _walked_to(written: bytes, key: bytes) -> int | None:
    """The last such value of the object itself that is come to within the cost of a walk. Text and
    numbers are leapt over; a text of many quotes costs most."""
    cost = at = depth = 0
    found = None
    while cost < _MOST_WALK:
        step = _MARK.search(written, at, at + _LEAP_BYTES)
        left = at + (_MOST_WALK - cost) * _NUMBER_BYTES
        mark = step.start() if step else next_mark(written, at + _LEAP_BYTES, left)
        if mark < 0:
            break
        cost += 1 + (mark - at) // _NUMBER_BYTES
        at, one = mark + 1, written[mark : mark + 1]
        if one == b'"':
            at = near_string_end(written, at, _MOST_WALK - cost) + 1
            if not at:
                break
            cost += (at - mark) // _TEXT_BYTES
            upto = at + _VALUE_BYTES
            if written[mark:at] == key and depth == 1 and _IS_NAME.match(written, at, upto):
                number = _NUMBER.match(written, at, upto)
                found = int(number[1]) if number else None
        else:
            depth += 1 if one in b"[{" else -1
    return found


def near_string_end(text: bytes, at: int, cost: int) -> int:
    """As `string_end`; -1: it takes more than `cost`."""
    upto = at + cost * _TEXT_BYTES
    for _ in range(1 + cost // _QUOTES_COST):
        quote = text.find(b'"', at, upto)
        before = text[max(at, quote - _MOST_BACKSLASHES) : max(at, quote)]
        backslashes = len(before) - len(before.rstrip(b"\\"))
        if quote < 0 or backslashes == _MOST_BACKSLASHES:
            return -1
        if backslashes % 2 == 0:
            return quote
        run = _IN_STRING.match(text, quote + 1, quote + 1 + _IN_STRING_BYTES)
        at = run.end() if run else quote + 1
    return -1


def next_mark(written: bytes, at: int, upto: int) -> int:
    """Where the next quote or bracket is; -1: not before `upto`, or a slice behind that."""
    while at < min(upto, len(written)):
        end = at + _SLICE_BYTES
        for one in _MARKS:
            if (mark := written.find(one, at, end)) >= 0:
                end = mark
        if end < at + _SLICE_BYTES:
            return end
        at = end
    return -1


def _depths(text: bytes, at: int, key: bytes) -> tuple[int, bool, list[tuple[int, int]]]:
    """How deep the end is, seen from `at`; whether it is within a string; and, of each `key` with
    an integer, how deep it is and the integer."""
    depth, seen = 0, list[tuple[int, int]]()
    for token in _TOKEN.finditer(text, at):
        found = token[0]
        if found == b'"':
            return depth, True, seen
        if found in b"[{":
            depth += 1
        elif found in b"]}":
            depth -= 1
        elif found == key and (number := _NUMBER.match(text, token.end())):
            seen.append((depth, int(number[1])))
    return depth, False, seen


def long_token_ids(written: bytes, where: str) -> "array[int] | None":
    """An array of numbers as token ids; None: it is none. Raises RequestError as `as_token_ids`."""
    at, end = written.index(b"[") + 1, written.rindex(b"]")
    if any(written.find(other, at, end) >= 0 for other in (b'"', b"[", b"{")):
        return None
    ids = array("I")
    while at < end:
        comma = written.find(b",", at + _SLICE_BYTES, end)
        upto = end if comma < 0 else comma
        values = _decode(b"[%b]" % written[at:upto], type=list[object])
        ids.extend(as_token_ids(values, where, first=len(ids)))
        at = upto + 1
    return ids
