"""Where each session went last, for so many sessions."""

from collections import OrderedDict

# The session that was heard of least recently is forgotten first.
MAX_SESSIONS = 65_536


class SessionHomes:
    """Session -> id of its worker. Bounded; a session that is None or empty has no home."""

    def __init__(self, most: int = MAX_SESSIONS) -> None:
        self._most = most
        self._homes: OrderedDict[str, str] = OrderedDict()
        self._behind: SessionHomes | None = None  # of a copy: what it was made from

    def __len__(self) -> int:
        return len(self._homes)

    def __deepcopy__(self, memo: object) -> "SessionHomes":
        """O(1): it reads through to this one, as long as this one does not change, and never
        writes to it. A policy is copied to see what it would choose, for one choice."""
        copy = SessionHomes(self._most)
        copy._behind = self
        return copy

    def of(self, session: str | None) -> str | None:
        """The worker's id; None: none is known."""
        if not session:
            return None
        home = self._homes.get(session)
        if home is None and self._behind is not None:
            return self._behind.of(session)
        return home

    def settle(self, session: str | None, worker_id: str) -> None:
        """It lives there now."""
        if not session:
            return
        homes = self._homes
        if session in homes:
            homes.move_to_end(session)
        homes[session] = worker_id
        if len(homes) > self._most:
            homes.popitem(last=False)
