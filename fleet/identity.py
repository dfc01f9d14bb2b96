"""Who a worker is, and which mirror knows its blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

from radixgate.policies.in_tokens import in_tokens
from radixgate.proto.blocks import (
    BYTE_BLOCK,
    BYTES_A_TOKEN,
    blocks_in_bytes,
    bytes_in_blocks,
)

# A mirror that believes too much costs little, one that believes too little costs hits.
_GENEROSITY = 2


class WorkerState(StrEnum):
    """Only a ready worker is given requests."""

    JOINING = "joining"
    READY = "ready"
    DRAINING = "draining"
    DOWN = "down"
    PAUSED = "paused"


class MirrorKey(NamedTuple):
    """Workers with equal keys share a mirror: the same model, cut in the same blocks.

    A tuple, as it is hashed several times for every request: a dataclass hashes in Python.
    """

    model: str
    unit: Literal["tokens", "bytes"]
    block_size: int  # 0 with bytes, whose sizes are those of `byte_chain`

    def cached_tokens(
        self, depths: Sequence[int], blocks: int, prompt_tokens: int
    ) -> Sequence[int]:
        """What each depth into a prompt's `blocks` blocks is worth; never the prompt's last token.

        O(depths), 10 ns each; of bytes most of a microsecond, as these are counted in Python.
        """
        if not blocks:
            return [0] * len(depths)
        if self.unit == "tokens":
            return in_tokens(depths, self.block_size, max(0, prompt_tokens - 1) // self.block_size)
        worth = prompt_tokens / bytes_in_blocks(blocks)
        most = max(0, prompt_tokens - 1)
        return [min(int(bytes_in_blocks(depth) * worth), most) for depth in depths]

    def depth_of(self, cached_tokens: int, blocks: int, prompt_tokens: int) -> int:
        """How many of a prompt's `blocks` blocks so many cached tokens cover."""
        if self.unit == "tokens":
            return min(blocks, cached_tokens // self.block_size)
        covered = bytes_in_blocks(blocks) * cached_tokens // max(1, prompt_tokens)
        return min(blocks, blocks_in_bytes(covered))

    def capacity_blocks(self, capacity_tokens: int | None) -> int | None:
        """The blocks that a pool of so many tokens may hold, generously; None: it is unknown."""
        if capacity_tokens is None:
            return None
        if self.unit == "tokens":
            return max(1, _GENEROSITY * capacity_tokens // self.block_size)
        return max(1, _GENEROSITY * capacity_tokens * BYTES_A_TOKEN // BYTE_BLOCK)


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """What a worker says of itself; a change of any field but its names is another worker."""

    id: str
    url: str
    kind: Literal["grpc", "http"]
    model: str
    mirror: MirrorKey
    capacity_tokens: int | None  # None: it does not tell
    weights_id: str
    instance_id: str  # "": it does not tell
    reports_kv: bool
    aliases: tuple[str, ...] = ()  # further names of the model
    adapters: tuple[str, ...] = ()  # served besides; each has a cache of its own

    @property
    def names(self) -> tuple[str, ...]:
        """What requests may call; the model's own first."""
        return (self.model, *self.aliases, *self.adapters)

    def serves(self, name: str | None) -> bool:
        return name == self.model or name in self.aliases or name in self.adapters

    def spaces(self) -> Iterator[tuple[str, str]]:
        """Each name, and the one under which its prompts are cached."""
        for name in (self.model, *self.aliases):
            yield name, self.model
        for name in self.adapters:
            yield name, name

    def is_same_but_for_names(self, other: "WorkerIdentity") -> bool:
        """The same process with other adapters loaded."""
        named = replace(other, aliases=self.aliases, adapters=self.adapters)
        return named == self
