"""Bodies that take too long to be read beside everybody else's streams.

They are read in a thread. That helps as far as no single call of the decoder takes long, as each
keeps the interpreter to itself: 20 ms for 30 MB of text, ten times that for as much of short items.
So of a long array only the first item is looked at, and the rest is the worker's to refuse.
"""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from radixgate.errors import RequestError
from radixgate.gateway.asking.foreign_request import ForeignRequest, read_foreign

# From here on it is read in the thread. A text of so many bytes takes 5 ms, as many token ids 30.
LARGE_BODY_BYTES = 2 * 1024 * 1024
_LONG_ARRAY_BYTES = 1024 * 1024
_ARRAYS = ("prompt", "input_ids", "input", "text")
_WITH_ARRAYS = frozenset((b"/v1/completions", b"/generate", b"/v1/embeddings", b"/v1/classify"))
# Of an array of texts, or of arrays of token ids. Nothing is tried twice, whatever its length.
_FIRST = re.compile(rb'\[\s*("(?:[^"\\]++|\\.)*+"|\[[^\[\]"{}]*+\])', re.DOTALL)
_NUMBERS = re.compile(rb"\[\s*[0-9]")
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

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
    if path not in _WITH_ARRAYS:
        return read_foreign(path, body)
    try:
        fields = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RequestError(f"the body is not valid JSON: {exc}", param="body") from exc
    prompt: bytes | None = None
    for name in _ARRAYS:
        written = fields.get(name)
        if written is None or len(memoryview(written)) < _LONG_ARRAY_BYTES:
            continue
        array = bytes(written)
        if _NUMBERS.match(array):
            fields[name], prompt = msgspec.Raw(b"[0]"), array
        elif first := _FIRST.match(array):
            fields[name] = msgspec.Raw(b"[%b]" % first[1])
    request = read_foreign(path, msgspec.json.encode(fields))
    return request if prompt is None else msgspec.structs.replace(request, prompt=prompt)
