"""The output of a batch: lines that are on the disk before anyone relies on them."""

import asyncio
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError


class _Line(msgspec.Struct):
    custom_id: str


class AnswerFile:
    """An append-only file of JSON lines, one for each custom id, and the ids it holds.

    Only one process at a time can have it. A last line that was cut off by the end of the process
    or of the machine is removed when the file is opened; its request is then done again.
    """

    def __init__(self, path: Path) -> None:
        """Raises ConfigError if another process has it, or for a line that is none of ours."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise ConfigError(f"--output {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise ConfigError(f"--output {path}: another process is writing to it") from error
        try:
            self.done, self.repaired_bytes = _repaired(self._descriptor, path)
        except ConfigError:
            os.close(self._descriptor)
            raise
        _sync_folder(path)
        self._path = path
        # Lines that wait for the disk: at most one for each request in flight, as each waits here.
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def append(self, custom_id: str, line: bytes) -> None:
        """Returns when the line is on the disk; lines of the same moment share one sync.

        `line` has no line end. Raises ConfigError for an id that is there already, and if the disk
        fails.
        """
        if custom_id in self.done:
            raise ConfigError(f"{custom_id!r} already has an answer")
        self.done.add(custom_id)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((line + b"\n", written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        await written

    async def close(self) -> None:
        """Write what waits, and let go of the file."""
        if self._writing is not None:
            await self._writing
        os.close(self._descriptor)

    async def _write(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting, []
                try:
                    await asyncio.to_thread(
                        _write_and_sync, self._descriptor, b"".join(line for line, _ in taken)
                    )
                except OSError as error:
                    failure = ConfigError(
                        f"--output {self._path} cannot be written: {error.strerror}; what is"
                        " answered is kept, start the same command again"
                    )
                    for _, written in taken:
                        if not written.done():
                            written.set_exception(failure)
                    continue
                for _, written in taken:
                    if not written.done():
                        written.set_result(None)
        finally:
            self._writing = None


def _write_and_sync(descriptor: int, data: bytes) -> None:
    before = os.fstat(descriptor).st_size
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    except OSError:
        # The next line must not go on where this one broke off.
        os.ftruncate(descriptor, before)
        raise


def _repaired(descriptor: int, path: Path) -> tuple[set[str], int]:
    """The ids of whole lines, and how many bytes behind the last of them were removed."""
    done: set[str] = set()
    end, size = 0, os.fstat(descriptor).st_size
    for number, (start, line) in enumerate(_lines_of(descriptor), 1):
        stop = start + len(line)
        try:
            if not line.endswith(b"\n"):
                raise msgspec.DecodeError("no line end")
            custom_id = msgspec.json.decode(line, type=_Line).custom_id
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if stop < size:  # not the last line: this is damage, or another kind of file
                raise ConfigError(
                    f"--output {path}:{number}: no line of a batch: {error}"
                ) from error
            break
        if custom_id in done:
            raise ConfigError(f"--output {path}:{number}: {custom_id!r} stands a second time")
        done.add(custom_id)
        end = stop
    if end < size:
        os.ftruncate(descriptor, end)
        os.fsync(descriptor)
    return done, size - end


def _lines_of(descriptor: int) -> Iterator[tuple[int, bytes]]:
    offset = 0
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        for line in file:
            yield offset, line
            offset += len(line)


def _sync_folder(path: Path) -> None:
    """So that a new file's name survives, too."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
