"""The input of a batch: checked as a whole before its first request, read line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError

PATHS = ("/v1/chat/completions", "/v1/completions", "/generate")


class _Line(msgspec.Struct):
    custom_id: str
    url: str
    body: msgspec.Raw
    method: str = "POST"


class _Body(msgspec.Struct):
    stream: bool | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """One line to be done."""

    custom_id: str
    path: str
    body: bytes  # as it stands in the file


class WorkList:
    """Holds where each line is and not the lines, so a file may be larger than the memory."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError with the file and line of whatever cannot be sent."""
        self._path = path
        self._places: dict[str, tuple[int, int]] = {}  # custom_id -> offset and length
        try:
            for number, offset, line in _lines(path):
                work = _work(line, f"{path}:{number}")
                if work.custom_id in self._places:
                    raise ConfigError(
                        f"{path}:{number}: custom_id {work.custom_id!r} stands a second time"
                    )
                self._places[work.custom_id] = (offset, len(line))
            if not self._places:
                raise ConfigError(f"{path} holds no requests")
            self._file = path.open("rb")
        except OSError as error:
            raise ConfigError(f"--input {path}: {error.strerror}") from error

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, custom_id: str) -> bool:
        return custom_id in self._places

    def ids(self) -> list[str]:
        """All custom ids in the order of the file."""
        return list(self._places)

    def read(self, custom_id: str) -> Work:
        """One line. Raises ConfigError if the file was changed meanwhile."""
        offset, length = self._places[custom_id]
        self._file.seek(offset)
        work = _work(self._file.read(length), f"{self._path}, byte {offset}")
        if work.custom_id != custom_id:
            raise ConfigError(f"{self._path} was changed while it was being worked on")
        return work

    def close(self) -> None:
        self._file.close()


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, offset, line
            offset += len(line)


def _work(line: bytes, where: str) -> Work:
    try:
        told = msgspec.json.decode(line, type=_Line)
        body = msgspec.json.decode(told.body, type=_Body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: {error}") from error
    if told.method != "POST" or told.url not in PATHS:
        raise ConfigError(
            f"{where}: {told.method} {told.url} cannot be done here; "
            f"there are POST to {', '.join(PATHS)}"
        )
    if body.stream:
        raise ConfigError(f"{where}: stream must not be true in a batch")
    return Work(told.custom_id, told.url, bytes(told.body))
