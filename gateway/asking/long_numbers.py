"""An object's long arrays of numbers, as token ids are, found without one call of the decoder over
all of it: 26 MB of them kept the interpreter from everybody else for 80 ms."""

import re
from collections.abc import Collection

import msgspec

from radixgate.gateway.asking.long_json import near_string_end, next_mark

_MARK = re.compile(rb'["\[\]{}]')
# Behind a field's name.
_NUMBERS = re.compile(rb"\s*+:\s*+\[(?=\s*+[0-9])")
_OTHER = re.compile(rb"\s*+:")
# What stands around the arrays, in marks and thousands of bytes: milliseconds.
_MOST_STEPS = 2_000
_STEP_BYTES = 1_000
_SLICE_BYTES = 65_536
_decode = msgspec.json.Decoder(msgspec.Raw).decode


def long_numbers(
    written: bytes, names: Collection[str], least_bytes: int
) -> dict[str, tuple[int, int]]:
    """Where the values of those of its fields are that are such arrays, of so many bytes at least,
    from bracket to bracket; each has been seen to be JSON. Empty, too, if a field stands twice, if
    it is no object, or if too much stands around them: then nothing is known of it.

    What remains when they are cut is not seen to be JSON. In any thread; each call takes
    microseconds.
    """
    found: dict[str, tuple[int, int]] = {}
    seen = set[bytes]()
    at = depth = steps = 0
    while steps < _MOST_STEPS:
        mark = _MARK.search(written, at, at + _STEP_BYTES)
        if mark is None:
            if at >= len(written):
                return found
            at, steps = at + _STEP_BYTES, steps + 1
            continue
        start, at = mark.start(), mark.end()
        steps += 1
        if mark[0] != b'"':
            depth += 1 if mark[0] in b"[{" else -1
            continue
        at = near_string_end(written, at, _MOST_STEPS - steps) + 1
        steps += (at - start) // _STEP_BYTES
        if not at:
            break
        if depth != 1 or not _OTHER.match(written, at, at + _STEP_BYTES):
            continue
        name = written[start + 1 : at - 1]
        if name in seen or b"\\" in name:
            break
        seen.add(name)
        numbers = _NUMBERS.match(written, at, at + _STEP_BYTES)
        if numbers is None or (told := name.decode("utf-8", "replace")) not in names:
            continue
        opened = numbers.end() - 1
        closed = next_mark(written, opened + 1, len(written))
        if closed < 0 or written[closed : closed + 1] != b"]":
            break
        if closed + 1 - opened >= least_bytes:
            if not _are_json(written, opened + 1, closed):
                break
            found[told] = opened, closed + 1
        at = closed + 1
    return {}


def _are_json(written: bytes, at: int, end: int) -> bool:
    """Values and the commas between them."""
    while at < end:
        comma = written.find(b",", at + _SLICE_BYTES, end)
        upto = end if comma < 0 else comma
        piece = written[at:upto]
        try:
            _decode(b"[%b]" % piece)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if not piece.strip() or comma == end - 1:
            return False
        at = upto + 1
    return True
