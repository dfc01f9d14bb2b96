"""Settings of who may ask what of the gateway, and with which key it asks its workers."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError

_KEYS = ("api_key", "admin_api_key", "worker_api_key")


@dataclass(frozen=True, slots=True, repr=False)
class AccessConfig:
    """Knobs of keys. Its repr shows none of them."""

    api_key: str | None = knob(
        None,
        env="RADIXGATE_API_KEY",
        help="key that clients send as `Authorization: Bearer KEY`; without an admin key it opens"
        " the admin routes too; none: only keys of the file are known, or none is needed",
    )
    admin_api_key: str | None = knob(
        None,
        env="RADIXGATE_ADMIN_API_KEY",
        help="key of the admin routes, which no other key then opens; it opens the others too",
    )
    api_keys_file: str | None = knob(
        None, help="YAML file of hashed keys, each with its tenant, models and limits"
    )
    worker_api_key: str | None = knob(
        None,
        env="RADIXGATE_WORKER_API_KEY",
        help="key that http:// workers are asked with, unless one was added with a key of its own",
    )

    def __post_init__(self) -> None:
        for name in _KEYS:
            check_key(name, getattr(self, name))
        if self.api_key is not None and self.api_key == self.admin_api_key:
            raise ConfigError("api_key and admin_api_key are the same: clients would be admins")

    def __repr__(self) -> str:
        return "AccessConfig()"


def check_key(name: str, key: str | None) -> None:
    """Raises ConfigError, which does not show the key, if no header could carry it."""
    if key is None:
        return
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{name} must be visible ASCII without spaces, and not empty")
