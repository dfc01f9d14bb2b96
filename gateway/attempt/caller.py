"""Who asks: what a key allows, and what keeps its tenant's cache apart."""

import hashlib
from collections.abc import Set
from dataclasses import dataclass

from radixgate.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a key, or anyone where no key is needed. Holds no key."""

    tenant: str | None = None  # None: of the gateway itself, or nobody is told apart
    admin: bool = False
    models: frozenset[str] | None = None  # None: all
    priority: int | None = None  # in the queue; None: the request's own
    salted: bool = False  # there are tenants, and their caches are kept apart

    def models_of(self, served: Set[str]) -> Set[str]:
        """Of the models that are served, those this caller may know of."""
        return served if self.models is None else served & self.models

    def salt(self, *given: bytes) -> str | None:
        """The salt of this caller's cache, from what the client itself gave as one.

        The same in every gateway, and never another tenant's, whatever a client gives. None: none
        is needed. About 1 us.
        """
        if not self.salted or (self.tenant is None and not any(given)):
            return None
        digest = hashlib.blake2b(digest_size=16)
        for part in ((self.tenant or "").encode(), *given):
            digest.update(b"%d:%b" % (len(part), part))
        return digest.hexdigest()

    def must_be_admin(self) -> None:
        """Raises Forbidden."""
        if not self.admin:
            raise Forbidden("this key does not open the admin routes", code="not_admin")


# Where no key is set: nobody is told apart, and everything is open.
ANYONE = Caller(admin=True)
