"""The keys that open the gateway: kept as digests, compared in constant time, never shown."""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence

from radixgate.errors import ConfigError, Unauthorized
from radixgate.gateway.attempt.caller import ANYONE, Caller
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.keys_file import KeyEntry, TenantLimits, limits_of, read_keys_file

_SCHEME = b"bearer "
_SHORT = 8  # bytes of a digest that find its entry; the whole is then compared in constant time
# Headers, of some ten bytes to a few KB each.
_MAX_RECENT = 1_024


class KeyRing:
    """Tells callers by their Authorization header. Without any key everybody is an admin."""

    def __init__(
        self,
        callers: Mapping[bytes, Caller],
        limits: Mapping[str, TenantLimits],
        *,
        open_to_all: bool,
    ) -> None:
        """`callers` by the SHA-256 of their key; `open_to_all`: only admin routes need one."""
        self.limits = limits  # by tenant of the file
        self._callers = {digest[:_SHORT]: (digest, callers[digest]) for digest in callers}
        # Headers whose key was known, as they came: a head that comes again is the same object, and
        # a look-up compares hashes that are seeded at random, never a key with another.
        self._recent: dict[bytes, Caller] = {}
        self._nobody = None if not open_to_all else ANYONE if not callers else Caller()

    @classmethod
    def of(cls, config: AccessConfig) -> "KeyRing":
        """Raises ConfigError if the file cannot be used, or a key stands in two places."""
        return cls.made(config, keys_of(config))

    @classmethod
    def made(cls, config: AccessConfig, entries: Sequence[KeyEntry]) -> "KeyRing":
        """`entries`: what the file holds. Raises ConfigError if a key stands in two places."""
        callers = _of_file(entries)
        salted = bool(callers)
        api, admin = config.api_key, config.admin_api_key
        if api is not None:
            callers[_digest_of(api)] = Caller(admin=admin is None, salted=salted)
        if admin is not None:
            callers[_digest_of(admin)] = Caller(admin=True, salted=salted)
        limits = limits_of(config.api_keys_file or "", entries)
        return cls(callers, limits, open_to_all=api is None and not entries)

    @property
    def used(self) -> bool:
        """Some key is set."""
        return bool(self._callers)

    @property
    def open_to_all(self) -> bool:
        """Generations need no key."""
        return self._nobody is not None

    def check_as_shut_as(self, before: "KeyRing") -> None:
        """Raises ConfigError where no key would be needed that was: a file of settings is empty for
        a moment while it is written, and must not open a gateway that runs."""
        if (before.used and not self.used) or (self.open_to_all and not before.open_to_all):
            raise ConfigError(
                "no key would be needed any more where one is now;"
                " start the gateway anew to open it"
            )

    def caller(self, authorization: bytes | None) -> Caller:
        """Whose key this is; where none is needed, a wrong one is nobody's. About 1 us.

        Raises Unauthorized.
        """
        known = None
        if authorization is not None:
            known = self._recent.get(authorization) or self._find(authorization)
        known = known or self._nobody
        if known is None:
            what = "no API key was given" if authorization is None else "this API key is not known"
            raise Unauthorized(f"{what}; send `Authorization: Bearer KEY`", code="invalid_api_key")
        return known

    def admin(self, authorization: bytes | None) -> Caller:
        """Raises Unauthorized without a known key, Forbidden for one that is no admin's."""
        caller = self.caller(authorization)
        if caller is self._nobody and not caller.admin:
            raise Unauthorized("the admin routes need the admin key", code="invalid_api_key")
        caller.must_be_admin()
        return caller

    def _find(self, authorization: bytes) -> Caller | None:
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            return None
        # Only digests are looked up: how far one agrees with another says nothing about a key.
        digest = hashlib.sha256(authorization[len(_SCHEME) :].strip()).digest()
        found = self._callers.get(digest[:_SHORT])
        if found is None or not hmac.compare_digest(found[0], digest):
            return None
        if len(self._recent) >= _MAX_RECENT:
            self._recent.clear()
        self._recent[authorization] = found[1]
        return found[1]


def keys_of(config: AccessConfig) -> Sequence[KeyEntry]:
    """What the file of keys holds now. Raises ConfigError if it cannot be used."""
    return read_keys_file(config.api_keys_file) if config.api_keys_file else ()


def _digest_of(key: str) -> bytes:
    return hashlib.sha256(key.encode("ascii")).digest()


def _of_file(entries: Iterable[KeyEntry]) -> dict[bytes, Caller]:
    return {
        bytes.fromhex(entry.sha256): Caller(
            tenant=entry.tenant,
            admin=entry.admin,
            models=None if entry.models is None else frozenset(entry.models),
            priority=entry.priority,
            salted=True,
        )
        for entry in entries
    }
