"""What a worker had reported when a gateway ended: kept in a file, believed once it is proven."""

import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_updates import Digest

_VERSION = 1
# A file that claims more is none of ours: eight bytes for each of half a billion blocks.
_MOST_BYTES = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class KeptBlocks:
    """The stored blocks of one worker as of one update of its stream."""

    worker_id: str
    epoch: int
    seq: int
    stored: Mapping[Tier, Sequence[int]]


class _Worker(msgspec.Struct, frozen=True, array_like=True):
    worker_id: str
    epoch: int
    seq: int
    stored: dict[int, bytes]  # by tier: ids of eight bytes each


class _File(msgspec.Struct, frozen=True, array_like=True):
    version: int
    workers: list[_Worker]


def write_kept(path: Path, kept: Iterable[KeptBlocks]) -> None:
    """Replace the file whole; only its owner can read it. Raises OSError. O(blocks)."""
    workers = [
        _Worker(
            one.worker_id,
            one.epoch,
            one.seq,
            {int(tier): array("Q", ids).tobytes() for tier, ids in one.stored.items()},
        )
        for one in kept
    ]
    data = msgspec.msgpack.encode(_File(_VERSION, workers))
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    beside.replace(path)


def read_kept(path: Path) -> Mapping[str, KeptBlocks]:
    """By worker id. Empty if there is no file. Raises ValueError if it is none of ours, OSError."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return {}
    if size > _MOST_BYTES:
        raise ValueError(f"{size} bytes are more than such a file can have")
    file = msgspec.msgpack.decode(path.read_bytes(), type=_File)
    if file.version != _VERSION:
        raise ValueError(f"it is of version {file.version}, and {_VERSION} is read")
    return {
        one.worker_id: KeptBlocks(
            one.worker_id,
            one.epoch,
            one.seq,
            {Tier(tier): array("Q", ids) for tier, ids in one.stored.items()},
        )
        for one in file.workers
    }


class Unproven:
    """Kept blocks, moved on by the worker's updates, until its digest says that they are right."""

    def __init__(self, kept: KeptBlocks) -> None:
        self._stored = {tier: set(kept.stored.get(tier, ())) for tier in Tier}
        self._pending: dict[int, Pending] = {}

    def apply(self, events: Sequence[KvEvent]) -> None:
        for event in events:
            match event:
                case Stored():
                    self._stored[event.tier].update(event.ids)
                case Removed():
                    self._stored[event.tier].difference_update(event.ids)
                case Pending():
                    self._pending[event.key] = event
                case Settled():
                    self._pending.pop(event.key, None)

    def digests(self) -> Mapping[Tier, Digest]:
        """O(blocks)."""
        return {tier: _digest(ids) for tier, ids in self._stored.items()}

    def events(self) -> list[KvEvent]:
        """What makes a mirror hold the same."""
        stored: list[KvEvent] = [
            Stored(0, list(ids), tier) for tier, ids in self._stored.items() if ids
        ]
        return [*stored, *self._pending.values()]


def _digest(ids: set[int]) -> Digest:
    xor = 0
    for block in ids:
        xor ^= block
    return Digest(len(ids), xor)
