"""Where results go: tried before anything is measured, as afterwards they would be lost."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from radixgate.errors import ConfigError


def check_file(flag: str, where: str | None) -> None:
    """Raises ConfigError unless a file can be written there. Makes its folder; None: nowhere."""
    if where is None:
        return
    path = Path(where)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_file():
            path.open("ab").close()
        elif not path.exists():  # else a pipe or a device, which may be opened once only
            _try(path.parent)
    except OSError as error:
        raise _refusal(flag, path, error) from error


def check_folder(flag: str, where: str | None) -> None:
    """Raises ConfigError unless files can be written into that folder, which it makes."""
    if where is None:
        return
    path = Path(where)
    try:
        _try(path)
    except OSError as error:
        raise _refusal(flag, path, error) from error


@contextmanager
def writing(flag: str, where: Path) -> Iterator[None]:
    """A disk that was full or gone when it came to it is a ConfigError, as in the trial before."""
    try:
        yield
    except OSError as error:
        raise _refusal(flag, where, error) from error


def _try(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def _refusal(flag: str, path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{flag} {path} cannot be written: {error.strerror or error}")
