"""Lines on their way to a file, written by a thread: a slow disk never holds the loop."""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from radixgate.errors import ConfigError
from radixgate.log import fields

# What waits to be written; beyond it a line is dropped and counted.
MAX_WAITING_BYTES = 16 * 1024 * 1024
_CLOSE_WITHIN_S = 2.0
_ALL_AT_ONCE = 256  # lines that are written together
STDERR = "-"
# A pipe that nobody reads is an error, as else the start would wait for its reader.
_HOW = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK

_log = logging.getLogger(__name__)


class Written(Protocol):
    """Something that becomes a line."""

    def encode(self) -> bytes:
        """With its line end; called in the writer's thread."""
        ...


class LineWriter:
    """Appends to a file what `put` is given, in order.

    Who waits for the disk is the thread alone. Lines are dropped, and counted, while more than
    16 MB wait, and where the disk refuses them. `reopen` and `put` may be called from the loop at
    any time; neither blocks.
    """

    def __init__(self, path: str, heading: Callable[[], bytes] = lambda: b"") -> None:
        """`path`: `-` is standard error. `heading`: what each file but the first begins with.

        Raises ConfigError if the file cannot be opened.
        """
        self._path = path
        self._heading = heading
        try:
            self._file = self._open()
        except OSError as exc:
            raise ConfigError(f"cannot write to {path}: {exc.strerror or exc}") from exc
        self._waiting: deque[tuple[Written, int]] = deque()
        self._waiting_bytes = 0
        self._dropped_full = 0
        self._dropped_refused = 0
        self._refusing = False
        self._reopen = False
        self._closing = False
        self._wake = threading.Event()
        self._lock = threading.Lock()  # of `_waiting_bytes`
        self._thread = threading.Thread(target=self._run, name=f"write {path}", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Lines that are not in the file."""
        return self._dropped_full + self._dropped_refused

    def put(self, line: Written, size: int) -> None:
        """`size`: bytes that it holds while it waits. About 0.5 us."""
        with self._lock:
            if self._waiting_bytes + size > MAX_WAITING_BYTES or self._closing:
                self._dropped_full += 1
                return
            self._waiting_bytes += size
        self._waiting.append((line, size))
        self._wake.set()

    def reopen(self) -> None:
        """The file was moved away: what comes from now on goes into a new one."""
        self._reopen = True
        self._wake.set()

    def close(self) -> None:
        """Write what waits, for two seconds at most; what is then left is dropped."""
        with self._lock:
            self._closing = True
        self._wake.set()
        self._thread.join(_CLOSE_WITHIN_S)

    # ------------------------------------------------------------ in the thread

    def _run(self) -> None:
        while True:
            self._wake.clear()
            if self._reopen:
                self._reopen = False
                self._begin_anew()
            if self._waiting:
                self._write_some()
            elif self._closing:
                self._close()
                return
            else:
                self._wake.wait()

    def _write_some(self) -> None:
        lines: list[bytes] = []
        size = 0
        while self._waiting and len(lines) < _ALL_AT_ONCE:
            line, weight = self._waiting.popleft()
            size += weight
            try:
                lines.append(line.encode())
            except Exception:
                self._dropped_refused += 1
                _log.exception("a line could not be put in words", extra=fields(file=self._path))
        try:
            self._write(b"".join(lines))
            self._refusing = False
        except OSError as exc:
            self._dropped_refused += len(lines)
            if not self._refusing:
                _log.warning("lines are dropped: %s", exc, extra=fields(file=self._path))
            self._refusing = True
        finally:
            with self._lock:
                self._waiting_bytes -= size

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def _begin_anew(self) -> None:
        try:
            fresh = self._open()
        except OSError as exc:
            _log.warning("the file stays as it is: %s", exc, extra=fields(file=self._path))
            return
        self._close()
        self._file = fresh
        try:
            self._write(self._heading())
        except OSError as exc:
            _log.warning("no heading: %s", exc, extra=fields(file=self._path))

    def _open(self) -> int:
        if self._path == STDERR:
            return 2
        # Nobody else's business: it tells who asked when, if not what.
        file = os.open(self._path, _HOW, 0o600)
        os.set_blocking(file, True)  # who writes may wait
        return file

    def _close(self) -> None:
        if self._path != STDERR:
            os.close(self._file)
