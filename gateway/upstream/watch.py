"""A call that is asked once and told of for as long as it lasts, on a connection of its own."""

from collections.abc import Callable
from typing import Protocol

from google.protobuf.message import DecodeError

from radixgate.gateway.upstream.grpc_messages import BrokenStream


class WatchLine(Protocol):
    """One connection to the worker, of messages in bytes."""

    def send_last(self, message: bytes) -> None:
        """It waits for the connection; nothing is sent behind it."""
        ...

    def close(self, why: str) -> None:
        """Have `run` return; it may be called by who is handed a message."""
        ...

    async def run(self) -> str:
        """Connect, and stay until it ends; why it did. Cancelled: it is closed."""
        ...


# Makes a line that hands on what comes, which may raise BrokenStream.
WatchDial = Callable[[Callable[[bytes], None]], WatchLine]


class Watch:
    """One such call. `run` it once."""

    def __init__(self, dial: WatchDial, take: Callable[[bytes], bool]) -> None:
        """`take` gets each message, and says whether that was enough."""
        self._take = take
        self._over = False
        self._fault: Exception | None = None  # of who took one
        self._line = dial(self._on_message)

    async def run(self, request: bytes) -> str:
        """Ask, and stay until it ends or was enough; why it did. Raises what `take` raises."""
        self._line.send_last(request)
        why = await self._line.run()
        if self._fault is not None:
            raise self._fault
        return why

    def _on_message(self, message: bytes) -> None:
        """Raises BrokenStream."""
        if self._over:
            return  # it came in one piece with what was enough
        try:
            self._over = self._take(message)
        except DecodeError as exc:
            raise BrokenStream(f"a message that is none of this call: {exc}") from exc
        except Exception as exc:
            # The event loop would keep it to itself.
            self._fault, self._over = exc, True
            self._line.close("what came could not be taken")
            return
        if self._over:
            self._line.close("it was enough")
