from array import array
from collections.abc import Mapping

from radixgate.gateway.attempt.flow_in_python import Columns, Step
from radixgate.gateway.attempt.lane import ChunkLane

class SentAt:
    """When it was sent to last, on the gateway's clock."""

    sent_at: float

class Flow:
    """A choice whose single tokens make events that differ by their text alone."""

    lane: ChunkLane
    ids: array[int]
    untaken: int  # tokens since its owner has looked

    def __init__(self, lane: ChunkLane, ids: array[int], before: bytes, after: bytes, /) -> None:
        """`ids`: gets each token's. `before`, `after`: of an event, what stands around its text."""

def take_step(
    flows: Mapping[int, Flow], columns: Columns, now: float, stepped_at: float, noted: int, /
) -> Step:
    """The chunks of a step's single tokens, all sent `now`, `stepped_at` being the step before.

    O(tokens). Raises ValueError if there is not one token of each handle.
    """
