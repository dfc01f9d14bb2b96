"""The records of one experiment on their way to its file."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from radixgate.analysis.experiments.records import Record, RequestLine, ShadowDecision, line_of
from radixgate.errors import ConfigError

InThread = Callable[[Callable[[], None]], object]

# The last line of a file is no longer.
_LAST_LINE_BYTES = 65_536
# A disk that takes no more than this at once makes lines of requests be dropped, and counted.
# What happens to the experiment itself is always kept: there is little of it.
MOST_BUFFERED_BYTES = 16 * 1024 * 1024


def unfinished(folder: Path, name: str) -> Path | None:
    """The newest file of an experiment of this name, if it has no last line: it was cut off, or
    runs in another gateway. None: there is no such file. Raises ConfigError for one that cannot be
    read."""
    # A time has no dash; one in its place is of a longer name that begins with this one.
    found = [one for one in folder.glob(f"{name}-*.jsonl") if "-" not in one.name[len(name) + 1 :]]
    if not found:
        return None
    try:
        newest = max(found, key=lambda one: one.stat().st_mtime)
        with newest.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_LINE_BYTES))
            last = file.read().splitlines()[-1:]
    except OSError as exc:
        raise ConfigError(f"cannot read {exc.filename}: {exc.strerror}") from exc
    return None if any(b'"record":"end"' in line for line in last) else newest


class WriterThread:
    """One thread for all files, made when the first of them is written to."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def __call__(self, work: Callable[[], None]) -> None:
        """In the order of the calls."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="experiment records")
        self._pool.submit(work)

    def close(self) -> None:
        """Once everything is written."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


class RecordFile:
    """Appends lines to a new file that only its owner may read.

    `put` costs the encoding of a record; writing is another thread's, one write after the other.
    """

    def __init__(self, path: Path, in_thread: InThread, most_lines: int) -> None:
        """`in_thread` runs what it is given elsewhere, in order. Raises ConfigError if the file
        cannot be made, or is there already."""
        self.path = path
        self.dropped = 0  # lines of requests
        self.failure = ""  # why nothing can be written any more
        self._in_thread = in_thread
        self._room = most_lines
        self._lines: list[bytes] = []
        # Bytes, each counted by one thread alone: what is between is here, or on its way.
        self._taken = 0
        self._written = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except OSError as exc:
            raise ConfigError(f"cannot record to {path}: {exc.strerror}") from exc

    def put(self, record: Record) -> None:
        """What happens to the experiment."""
        self._add(line_of(record))

    def put_line(self, record: RequestLine | ShadowDecision) -> None:
        """One of very many. Dropped if there is no room for it."""
        if self._room <= 0 or self._taken - self._written > MOST_BUFFERED_BYTES:
            self.dropped += 1
            return
        self._room -= 1
        self._add(line_of(record))

    def flush(self) -> None:
        """Send what is there on its way."""
        if not self._lines:
            return
        data = b"".join(self._lines)
        self._lines = []
        self._in_thread(lambda: self._write(data))

    def close(self) -> None:
        """After what was put before. Nothing may be put afterwards."""
        self.flush()
        self._in_thread(lambda: os.close(self._file))

    def _add(self, line: bytes) -> None:
        self._taken += len(line)
        self._lines.append(line)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as exc:
            self.failure = f"cannot record to {self.path}: {exc.strerror}"
        self._written += len(data)
