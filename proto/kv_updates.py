"""Numbered changes of a worker's prefix cache, as the log writes and a reader takes them."""

from collections.abc import Mapping
from dataclasses import dataclass

from radixgate.proto.kv_events import KvEvent, Pending, Stored, Tier


@dataclass(frozen=True, slots=True)
class Digest:
    """What a tier holds, in two numbers: equal sets have equal digests."""

    count: int = 0
    xor: int = 0  # of all block ids


@dataclass(frozen=True, slots=True)
class KvStep:
    """What one engine step changed, in order. Numbered from 1 in each epoch, without gaps."""

    epoch: int
    seq: int
    events: tuple[KvEvent, ...]


@dataclass(frozen=True, slots=True)
class KvSnapshotPart:
    """A part of all that is stored and pending as of `seq`; a parent precedes its children."""

    epoch: int
    seq: int
    first: bool
    last: bool
    stored: tuple[Stored, ...]
    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True)
class KvHeartbeat:
    """The digests as of `seq`; a tier that is not named holds nothing."""

    epoch: int
    seq: int
    digests: Mapping[Tier, Digest]


KvUpdate = KvStep | KvSnapshotPart | KvHeartbeat
