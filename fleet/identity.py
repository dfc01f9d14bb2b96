"""Who a worker is, and which mirror knows its blocks."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from radixgate.proto.blocks import BYTE_BLOCK, bytes_in_blocks

# What a token is worth where blocks are cut in bytes; as for the prompts that are sent there.
_BYTES_A_TOKEN = 4
# A mirror that believes too much costs little, one that believes too little costs hits.
_GENEROSITY = 2


class WorkerState(StrEnum):
    """Only a ready worker is given requests."""

    JOINING = "joining"
    READY = "ready"
    DRAINING = "draining"
    DOWN = "down"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class MirrorKey:
    """Workers with equal keys share a mirror: the same model, cut in the same blocks."""

    model: str
    unit: Literal["tokens", "bytes"]
    block_size: int  # 0 with bytes, whose sizes are those of `byte_chain`

    def cached_tokens(self, depth: int, blocks: int, prompt_tokens: int) -> int:
        """What `depth` of a prompt's `blocks` blocks are worth; never the prompt's last token."""
        if self.unit == "tokens":
            return min(depth * self.block_size, self._whole_blocks(prompt_tokens - 1))
        if not depth:
            return 0
        share = bytes_in_blocks(depth) / bytes_in_blocks(blocks)
        return max(0, min(prompt_tokens - 1, int(prompt_tokens * share)))

    def depth_of(self, cached_tokens: int, blocks: int, prompt_tokens: int) -> int:
        """How many of a prompt's `blocks` blocks so many cached tokens cover."""
        if self.unit == "tokens":
            return min(blocks, cached_tokens // self.block_size)
        return min(blocks, blocks * cached_tokens // max(1, prompt_tokens))

    def capacity_blocks(self, capacity_tokens: int | None) -> int | None:
        """The blocks that a pool of so many tokens may hold, generously; None: it is unknown."""
        if capacity_tokens is None:
            return None
        if self.unit == "tokens":
            return max(1, _GENEROSITY * capacity_tokens // self.block_size)
        return max(1, _GENEROSITY * capacity_tokens * _BYTES_A_TOKEN // BYTE_BLOCK)

    def _whole_blocks(self, tokens: int) -> int:
        return max(0, tokens) // self.block_size * self.block_size


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """What a worker says of itself; a change of any field is another worker."""

    id: str
    url: str
    kind: Literal["grpc", "http"]
    model: str
    mirror: MirrorKey
    capacity_tokens: int | None  # None: it does not tell
    weights_id: str
    instance_id: str  # "": it does not tell
    reports_kv: bool
