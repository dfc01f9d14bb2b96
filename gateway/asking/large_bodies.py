"""Bodies that take too long to be read beside everybody else's streams.

They are read in a thread. That helps as far as no single call of the decoder takes long, as each
keeps the interpreter to itself: 12 ms for 26 MB of text, 80 for as much of token ids, and if Python
objects are made of short items four times that. So token ids are looked at in slices, and of a long
array of others only the first item where that is a prompt, and the first thousands where they are
parts of one; the rest is the worker's to refuse.
"""

import asyncio
import re
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from radixgate.gateway.asking.foreign_request import ForeignRequest, read_foreign
from radixgate.gateway.asking.long_json import (
    first_items,
    long_token_ids,
    outer_integer,
    string_end,
)
from radixgate.gateway.asking.long_numbers import long_numbers
from radixgate.proto.fields import decode_object, nearest_priority

# From here on it is read in the thread. A text of so many bytes takes 5 ms, as many token ids 30.
LARGE_BODY_BYTES = 2 * 1024 * 1024
_LONG_BYTES = 1024 * 1024
# Of messages, parts and tools; where there are more, they have under 64 bytes each.
_MOST_ITEMS = 16_384
PROMPTS = frozenset(("prompt", "input_ids", "input", "text"))
_RESPONSES = b"/v1/responses"  # of which the input is one prompt
_PARTS = frozenset(("messages", "tools"))
_IDS = frozenset(("prompt", "input_ids"))
# Of these a text counts, and of the priority a number.
_NAMES = frozenset(
    (
        *("session_id", "user", "priority", "cache_salt", "extra_key"),
        *("conversation", "previous_response_id"),
    )
)
_NO_IDS = (b"[", b'"', b"{", b"}")
_A_NUMBER = b"[0]"  # for many
_NUMBERS = re.compile(rb"\[\s*[0-9]")
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode

T = TypeVar("T")


class LargeBodies:
    """One thread for all of them: two at once would keep the loop waiting twice as long."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-bodies")

    async def off_the_loop(self, make: Callable[[], T]) -> T:
        """Raises what `make` does."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, make)


def read_large(path: bytes, body: bytes) -> ForeignRequest:
    """As `read_foreign`, but for the items behind the first of a long array; the prompt of an array
    of ids is as the client wrote it. Called in any thread."""
    names = _IDS if path == _RESPONSES else PROMPTS
    fields, ids = fields_but_ids(body, names)
    prompt: bytes | None = None
    less: dict[str, bytes] = {}
    for name, written in (fields or {}).items():
        if name in ids:
            prompt = ids[name]
            continue
        if len(memoryview(written)) < _LONG_BYTES:
            continue
        value = bytes(written)
        if name in _NAMES and not value.startswith(b'"'):
            less[name] = b"null"  # as what is no text is taken
        elif not value.startswith(b"["):
            continue
        elif name in _PARTS or (name == "input" and path == _RESPONSES):
            less[name] = _cut(value)
        elif name in PROMPTS and _NUMBERS.match(value):
            less[name], prompt = b"[0]", value
        elif name in PROMPTS and (first := _first(value)):
            less[name] = b"[%b]" % first
    if fields is None or not (less or ids):
        return read_foreign(path, body)
    fields |= {name: msgspec.Raw(value) for name, value in less.items()}
    request = read_foreign(path, msgspec.json.encode(fields))
    return request if prompt is None else msgspec.structs.replace(request, prompt=prompt)


def read_large_object(body: bytes) -> dict[str, object]:
    """As `decode_object`, but a long array of token ids is an `array`. Called in any thread."""
    fields, cut = fields_but_ids(body, _IDS)
    fields = fields or {}
    read = {name: ids for name, value in cut.items() if (ids := long_token_ids(value, name))}
    for name in (fields.keys() & _IDS) - cut.keys():
        if len(memoryview(fields[name])) < _LONG_BYTES:
            continue
        value = bytes(fields[name])
        if _NUMBERS.match(value) and (ids := long_token_ids(value, name)):
            fields[name], read[name] = msgspec.Raw(b"[0]"), ids
    return {**decode_object(msgspec.json.encode(fields)), **read} if read else decode_object(body)


def priority_of(body: bytes) -> int:
    """What a body asks for; of a large one if that is found without reading all of it."""
    if len(body) >= LARGE_BODY_BYTES:
        return nearest_priority(outer_integer(body, b"priority"))
    try:
        given = _decode_priority(body).priority
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0
    return nearest_priority(given)


class _Prioritized(msgspec.Struct):
    """All else is passed over."""

    priority: object = None


_decode_priority = msgspec.json.Decoder(_Prioritized).decode


def _fields(body: bytes) -> dict[str, msgspec.Raw] | None:
    """None: it is no object, and whoever reads it says so."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def fields_but_ids(
    body: bytes, names: Collection[str]
) -> tuple[dict[str, msgspec.Raw] | None, dict[str, bytes]]:
    """The fields, and by name those that are long arrays of numbers, in whose place there is a
    short one."""
    numbers = long_numbers(body, names, _LONG_BYTES)
    if not numbers:
        return _fields(body), {}
    rest, at = [], 0
    for start, end in numbers.values():
        rest += [body[at:start], _A_NUMBER]
        at = end
    fields = _fields(b"".join([*rest, body[at:]]))
    if fields is None:
        return None, {}
    return fields, {name: body[start:end] for name, (start, end) in numbers.items()}


def _first(value: bytes) -> bytes | None:
    """Of an array of texts, or of arrays of token ids; None: it is neither."""
    at = len(value) - len(value[1:].lstrip())
    if value[at : at + 1] == b'"':
        end = string_end(value, at + 1)
        return value[at : end + 1] if end > 0 else None
    end = value.find(b"]", at)
    if value[at : at + 1] != b"[" or any(value.find(one, at + 1, end) > 0 for one in _NO_IDS):
        return None
    return value[at : end + 1]


def _cut(value: bytes) -> bytes:
    """An array of objects, of which one may have a long array of parts as its content."""
    first = first_items(value, _MOST_ITEMS)
    if first is not None:
        return first
    items = _decode_items(value)[:_MOST_ITEMS]
    return msgspec.json.encode([_with_fewer_parts(item) for item in items])


def _with_fewer_parts(item: msgspec.Raw) -> msgspec.Raw:
    if len(memoryview(item)) < _LONG_BYTES or bytes(memoryview(item)[:1]) != b"{":
        return item
    fields = _decode(item)
    content = fields.get("content")
    if content is None or bytes(memoryview(content)[:1]) != b"[":
        return item
    parts = first_items(bytes(content), _MOST_ITEMS)
    if parts is not None:
        fields["content"] = msgspec.Raw(parts)
    return msgspec.Raw(msgspec.json.encode(fields))
