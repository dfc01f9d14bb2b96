"""An order to abort: whose requests it means."""

from dataclasses import dataclass

import msgspec


class _Named(msgspec.Struct):
    """A request's body, read for nothing but this."""

    rid: object = None


_decode = msgspec.json.Decoder(_Named).decode


def rid_of(body: bytes) -> object:
    """As it stands in a request's body; None: there is none. O(len(body)), half a millisecond for
    a megabyte."""
    try:
        return _decode(body).rid
    except (msgspec.MsgspecError, RecursionError):
        return None


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

    def names_request(self, body: bytes) -> bool:
        """O(len(body))."""
        return self.everything or self.names_any(rid_of(body))

    def names_any(self, rid: object) -> bool:
        """`rid`: as it stands in a request's body; a batch is meant by any of its rids."""
        return any(map(self.names, rid)) if isinstance(rid, list) else self.names(rid)
