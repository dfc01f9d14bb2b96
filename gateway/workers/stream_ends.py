"""How a stream of events ends, as most do: with a finish, the end marker, and no word of its cost.

Compiled (`stream_ends_compiled.c`) it is one call, a fifth of the time. Where this was installed
without a compiler the same is done in Python.
"""

from radixgate.proto import sse

__all__ = [
    "COMPILED",
    "data_lines",
    "data_lines_in_python",
    "plain_finish",
    "plain_finish_in_python",
]

# From the last on.
_LOOKED_AT_EVENTS = 4
_DONE_BEHIND = b"\n\n" + sse.DONE


def plain_finish_in_python(stream: bytes, /) -> bytes | None:
    """The data of the event before the end marker, which may be a finish; all lines end with LF.

    None: there is no such end, or one of the last events may say more. O(its last events).
    """
    if not stream.endswith(_DONE_BEHIND):
        return None
    older, *last = stream.rsplit(b"\n\n", _LOOKED_AT_EVENTS + 1)
    end = stream[len(older) :] if len(last) > _LOOKED_AT_EVENTS else stream
    if b'"error"' in end or b'"usage"' in end or b'"meta_info"' in end:
        return None
    # Some types of /v1/responses begin with `response.`.
    if b'"response' in end or b"\r" in end:
        return None
    finish = last[-3] if len(last) > 2 else older
    return finish[6:] if finish.startswith(b"data: ") else None


def data_lines_in_python(stream: bytes, /) -> int:
    """How many lines are data; all of them end with LF."""
    # Six characters are leapt over, where of two each place is looked at: a fourth of the time.
    return stream.count(b"\ndata:") + stream.startswith(b"data:")


try:
    from radixgate.gateway.workers.stream_ends_compiled import data_lines, plain_finish
except ImportError:
    plain_finish, data_lines = plain_finish_in_python, data_lines_in_python
COMPILED = plain_finish is not plain_finish_in_python
