"""The file of keys: by their SHA-256, each with its tenant, its models and its limits.

keys:
  - sha256: 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
    tenant: team-a
    models: [toy]
    requests_per_minute: 600
"""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from radixgate.errors import ConfigError
from radixgate.gateway.settings.secret_yaml import read_secret_yaml

_SHA256 = re.compile(r"[0-9a-f]{64}")
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_PerMinute = Annotated[float, Meta(gt=0)]


class TenantLimits(msgspec.Struct, frozen=True):
    """What all keys of a tenant may ask for together; None: as the flags say."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class KeyEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One key of the file. The key itself is nowhere."""

    sha256: str
    tenant: _Name
    models: list[_Name] | None = None  # None: all
    admin: bool = False
    priority: int | None = None
    requests_per_minute: _PerMinute | None = None
    tokens_per_minute: _PerMinute | None = None

    @property
    def limits(self) -> TenantLimits:
        return TenantLimits(self.requests_per_minute, self.tokens_per_minute)


class _KeysFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: Annotated[list[KeyEntry], Meta(min_length=1)]


def read_keys_file(path: str) -> Sequence[KeyEntry]:
    """Raises ConfigError naming the file and the place; what stands there is not shown."""
    entries = read_secret_yaml("api_keys_file", path, _KeysFile).keys
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        if not _SHA256.fullmatch(entry.sha256):
            raise ConfigError(
                f"{path}: keys[{number}].sha256 must be 64 hex digits in lower case, as of"
                " `printf %s KEY | sha256sum`"
            )
        if entry.sha256 in seen:
            raise ConfigError(f"{path}: the key of keys[{number}] stands there twice")
        seen.add(entry.sha256)
    limits_of(path, entries)
    return entries


def limits_of(path: str, entries: Sequence[KeyEntry]) -> dict[str, TenantLimits]:
    """By tenant. Raises ConfigError where two keys of one tenant disagree."""
    limits: dict[str, TenantLimits] = {}
    for number, entry in enumerate(entries):
        if limits.setdefault(entry.tenant, entry.limits) != entry.limits:
            raise ConfigError(
                f"{path}: keys[{number}] gives tenant {entry.tenant!r} other limits than an"
                " earlier key does; a tenant's keys share one limit"
            )
    return limits
