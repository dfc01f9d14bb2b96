"""What the mirror holds of one worker, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from radixgate.proto.kv_events import Tier


@dataclass(frozen=True, slots=True)
class WorkerBlocks:
    """Blocks by how they are known, and where the worker's reports stand."""

    stored: Mapping[Tier, int]  # as reported
    expected: int  # dispatched or pending; in claimed pieces, until all of the prompt is stored
    approximate: int  # believed of a worker that reports nothing
    pending_prompts: int
    epoch: int | None  # None: nothing has been reported yet
    complete: bool  # a whole snapshot has been applied since the last reset
    late_updates: int  # discarded, as they were of an epoch that is over
