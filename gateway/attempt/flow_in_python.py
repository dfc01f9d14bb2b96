"""What flow_compiled.c does, where this was installed without a compiler."""

import asyncio
from array import array
from collections.abc import Mapping

import msgspec

from radixgate.gateway.attempt.lane import ChunkLane

# Handles, token ids and texts of a step's single tokens.
Columns = tuple[list[int], list[int], list[str]]
Token = tuple[int, int, str]
# By client what goes to it, those of handles that do not flow, handles with `noted` or more
# untaken, lanes that were in no step at `stepped_at` and when they were sent to last, and how many
# others were sent to.
Step = tuple[
    dict[asyncio.Transport, bytes],
    list[Token],
    list[int],
    list[tuple[ChunkLane, float]],
    int,
]
_json = msgspec.json.Encoder().encode


class Flow:
    """A choice whose single tokens make events that differ by their text alone."""

    __slots__ = ("after", "before", "ids", "lane", "untaken")

    def __init__(self, lane: ChunkLane, ids: "array[int]", before: bytes, after: bytes, /) -> None:
        self.lane, self.ids, self.before, self.after = lane, ids, before, after
        self.untaken = 0


def take_step(
    flows: Mapping[int, Flow], columns: Columns, now: float, stepped_at: float, noted: int, /
) -> Step:
    row: dict[asyncio.Transport, bytes] = {}
    rest: list[Token] = []
    owing: list[int] = []
    late: list[tuple[ChunkLane, float]] = []
    together = 0
    for handle, token_id, text in zip(*columns, strict=True):
        flow = flows.get(handle)
        if flow is None:
            rest.append((handle, token_id, text))
            continue
        flow.ids.append(token_id)
        flow.untaken += 1
        if flow.untaken >= noted:
            owing.append(handle)
        if not text:
            continue
        lane = flow.lane
        # Who was in the last step waits as long as all others who were.
        if lane.sent_at == stepped_at:
            together += 1
        else:
            late.append((lane, lane.sent_at))
        lane.sent_at = now
        event = b"".join((flow.before, _json(text), flow.after))
        row[lane.to] = row.get(lane.to, b"") + b"%x\r\n%b\r\n" % (len(event), event)
    return row, rest, owing, late, together
