"""The connections to one worker, kept alive and used again, the last one first."""

import asyncio
import logging
import ssl

from radixgate.clock import Clock
from radixgate.errors import OutOfFiles, WorkerFailed, WorkerUnreachable
from radixgate.gateway.heads.answer_heads import AnswerHeads
from radixgate.gateway.loop.deadlines import NEVER, Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.upstream.dial import OUT_OF_FILES, dial

_SILENT_S = 10.0
_log = logging.getLogger(__name__)


class UpstreamPool:
    """The connections to one worker. Running ones are not limited; idle ones are, by `max_idle`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        clock: Clock,
        deadlines: Deadlines,
        turn: LoopTurn,
        max_idle: int,
        idle_timeout_s: float,
        credentials: bytes = b"",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`credentials`: a header line of every request; empty: none. `tls`: None: in the clear."""
        self.host, self.port, self._tls = host, port, tls
        self.authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.url = f"{'http' if tls is None else 'https'}://{self.authority}"
        self.credentials = credentials
        self.heard = False  # bytes of an answer have come; who asks takes it back
        self.dialed = 0  # connections that have come about, ever
        self._silent_until = 0.0  # of files that are lacking, which each request would say
        self._clock = clock
        self.deadline = NEVER  # of the connection that has been idle for longest
        self._deadlines = deadlines
        self._max_idle = max_idle
        self._idle_timeout_s = idle_timeout_s
        self.heads, self.turn = AnswerHeads(), turn
        self._idle: dict[UpstreamConnection, None] = {}  # the last one in is the warmest
        self._open: set[UpstreamConnection] = set()

    def failure(self, why: str) -> WorkerFailed:
        return WorkerFailed(f"worker {self.url}: {why}")

    def take_idle(self) -> UpstreamConnection | None:
        """A kept connection that has brought nothing meanwhile, or None: then `connect`. 1 us.

        What the loop has not read of it yet nobody asked for: it would be taken for the answer to
        the next request, or it is the end of the connection.
        """
        while self._idle:
            connection = self._idle.popitem()[0]
            if not connection.is_open():
                continue
            if not connection.late.has_come():
                return connection
            connection.abort()
        return None

    async def connect(self, timeout_s: float) -> UpstreamConnection:
        """A fresh connection. Raises WorkerUnreachable; WorkerFailed if it takes too long, and
        OutOfFiles if we may open none."""
        self._deadlines.watch(self)
        try:
            async with asyncio.timeout(timeout_s):
                connection = await dial(
                    lambda: UpstreamConnection(self), self.host, self.port, self._tls
                )
        except TimeoutError as exc:
            raise self.failure(f"no connection within {timeout_s:g} s") from exc
        except OSError as exc:
            if exc.errno in OUT_OF_FILES:
                raise self._out_of_files() from exc
            raise WorkerUnreachable(f"worker {self.url}: {exc.strerror or exc}") from exc
        self.dialed += 1
        self._open.add(connection)
        return connection

    def _out_of_files(self) -> OutOfFiles:
        why = f"this gateway may open no more files, nor a connection to {self.url} (ulimit -n)"
        now = self._clock.now()
        if now >= self._silent_until:
            self._silent_until = now + _SILENT_S
            _log.warning(why)
        return OutOfFiles(why)

    def release(self, connection: UpstreamConnection) -> None:
        """Keep a connection for the next request; close it if enough are kept, if more has come
        than the answer, or if its worker has answered what it has not had all of: nobody knows
        whether it takes the rest."""
        if len(self._idle) >= self._max_idle or connection.queued or connection.unsent():
            connection.abort()
            return
        connection.idle_until = until = self._clock.now() + self._idle_timeout_s
        self._idle[connection] = None
        if until < self.deadline:
            self.deadline = until

    def on_deadline(self) -> None:
        """Close what has been idle for too long; the longest idle come first."""
        now = self._clock.now()
        for connection in [one for one in self._idle if one.idle_until <= now]:
            connection.abort()
            self._idle.pop(connection, None)
        self.deadline = min((one.idle_until for one in self._idle), default=NEVER)

    def forget(self, connection: UpstreamConnection) -> None:
        """The connection is lost."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    def close(self) -> None:
        """Close every connection, idle or not; running exchanges hear nothing more."""
        self._deadlines.forget(self)
        for connection in list(self._open):
            connection.abort()
