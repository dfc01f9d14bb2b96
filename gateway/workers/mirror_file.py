"""The file by which a gateway that is started again knows what its workers have cached."""

import logging
import os
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError
from radixgate.log import fields
from radixgate.radix_mirror.feed import KvFeed
from radixgate.radix_mirror.kept import KeptBlocks, read_kept, write_kept

_log = logging.getLogger(__name__)


class MirrorFile:
    """Read once, at the start; written once, at the end. A file that is no good costs a warning."""

    def __init__(self, path: str | None) -> None:
        """None: nothing is kept. Raises ConfigError if nothing can be written there."""
        self._path = None if path is None else Path(path)
        self._kept: dict[str, KeptBlocks] = {}
        self._feeds: dict[str, KvFeed] = {}
        if self._path is None:
            return
        _check_writable(self._path)
        try:
            self._kept = dict(read_kept(self._path))
        except (OSError, ValueError, msgspec.MsgspecError) as exc:
            _log.warning(
                "the mirror file is not used", extra=fields(path=str(self._path), error=str(exc))
            )

    def take(self, worker_id: str) -> KeptBlocks | None:
        """What was kept of the worker, once: the next life of the worker begins without."""
        return self._kept.pop(worker_id, None)

    def follow(self, worker_id: str, feed: KvFeed) -> None:
        """At the end, what this feed has brought is kept; a later one of the worker replaces it."""
        self._feeds[worker_id] = feed

    def write(self) -> None:
        """Before the workers leave the mirror. Raises nothing. O(blocks)."""
        if self._path is None:
            return
        kept = [one for feed in self._feeds.values() if (one := feed.kept()) is not None]
        try:
            write_kept(self._path, kept)
        except OSError as exc:
            _log.warning(
                "the mirror file is not written", extra=fields(path=str(self._path), error=str(exc))
            )


def _check_writable(path: Path) -> None:
    """At the end it would be too late to say so. Raises ConfigError."""
    trial = path.with_name(f"{path.name}.{os.getpid()}.trial")
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        trial.touch()
        trial.unlink()
    except OSError as exc:
        raise ConfigError(f"mirror_file {path} cannot be written: {exc.strerror or exc}") from exc
