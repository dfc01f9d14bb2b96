"""What can happen to a prefix cache, as worker, log and mirror speak of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Tier(IntEnum):
    """Where a block lies; the numbers are those of `worker.proto`."""

    DEVICE = 0
    HOST = 1
    STORAGE = 2


@dataclass(frozen=True, slots=True)
class Stored:
    """A run of blocks, each the parent of the next, came to lie in `tier`."""

    parent: int
    ids: Sequence[int]
    tier: Tier = Tier.DEVICE


@dataclass(frozen=True, slots=True)
class Removed:
    """These blocks left `tier`; children before parents."""

    ids: Sequence[int]
    tier: Tier = Tier.DEVICE


@dataclass(frozen=True, slots=True)
class Pending:
    """A prompt was admitted whose blocks are not computed yet; `key` is settled later."""

    key: int
    parent: int
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class Settled:
    """The prompt of `key` is stored, aborted or refused."""

    key: int


KvEvent = Stored | Removed | Pending | Settled
