"""An order to abort: whose requests it means."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec


class _Named(msgspec.Struct):
    """A request's body, read for nothing but this."""

    rid: object = None


# Of bodies that are read for it before everybody else has a turn: half a millisecond.
TURN_BYTES = 1_048_576
_decode = msgspec.json.Decoder(_Named).decode


def rid_of(body: bytes) -> object:
    """As it stands in a request's body; None: there is none. O(len(body)), half a millisecond for
    a megabyte."""
    try:
        return _decode(body).rid
    except (msgspec.MsgspecError, RecursionError):
        return None


async def in_turns(reads: Iterable[Callable[[], int]]) -> None:
    """So that an order finds whom it means by bodies that have been read already. Each of `reads`
    reads one and says how many bytes that took; the loop goes on behind every TURN_BYTES."""
    taken = 0
    for read in reads:
        taken += read()
        if taken >= TURN_BYTES:
            taken = 0
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class AbortOrder:
    """By rid, exactly unless `prefix`; everything if there is no rid."""

    rid: str | None  # None: everything
    prefix: bool = False

    @property
    def everything(self) -> bool:
        return self.rid is None

    def names(self, rid: object) -> bool:
        """`rid`: what a request gave as its own, of any type; None: nothing."""
        if self.rid is None:
            return True
        if not isinstance(rid, str):
            return False
        return rid.startswith(self.rid) if self.prefix else rid == self.rid

    def names_any(self, rid: object) -> bool:
        """`rid`: as it stands in a request's body; a batch is meant by any of its rids."""
        return any(map(self.names, rid)) if isinstance(rid, list) else self.names(rid)
