"""The file of workers: who is in the fleet besides what the flags name, read again on a reload.

workers:
  - url: grpc://10.0.0.7:30001
  - url: http://10.0.0.8:30000
    api_key: a-key-of-that-worker
    labels: {zone: b}
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, structs

from radixgate.errors import ConfigError, RequestError
from radixgate.gateway.settings.access_config import check_key
from radixgate.gateway.settings.secret_yaml import read_secret_yaml
from radixgate.gateway.workers.roster import Roster

_MOST_LABELS = 64
_Text = Annotated[str, Meta(max_length=128)]


class WorkerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A worker of the file."""

    url: Annotated[str, Meta(min_length=1)]
    api_key: str | None = None
    labels: Annotated[dict[_Text, _Text], Meta(max_length=_MOST_LABELS)] | None = None


class _WorkersFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    workers: list[WorkerEntry]


def configured_workers(
    urls: Sequence[str], path: str | None, roster: Roster
) -> Mapping[str, WorkerEntry]:
    """What flags and file name, by worker id. Changes nothing.

    Raises ConfigError naming the file and the place, never a key.
    """
    entries = [*(WorkerEntry(url) for url in urls), *(_read(path) if path else ())]
    found: dict[str, WorkerEntry] = {}
    for entry in entries:
        try:
            address = roster.address(entry.url)
        except RequestError as error:
            raise ConfigError(error.message) from error
        entry = structs.replace(entry, url=address.url)  # however it is spelt
        known = found.get(address.id)
        if known is not None and known != entry:
            raise ConfigError(f"worker {address.id} is given twice, and not the same both times")
        if entry.api_key is not None and address.scheme.startswith("grpc"):
            raise ConfigError(
                f"worker {address.url}: a {address.scheme}:// worker takes no api_key"
            )
        found[address.id] = entry
    return found


def _read(path: str) -> Sequence[WorkerEntry]:
    entries = read_secret_yaml("workers_file", path, _WorkersFile).workers
    for number, entry in enumerate(entries):
        check_key(f"{path}: workers[{number}].api_key", entry.api_key)
    return entries
