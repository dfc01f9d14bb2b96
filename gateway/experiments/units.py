"""Whose bucket a request is in."""

from collections.abc import Callable

from radixgate.fleet.fleet import Ask
from radixgate.policies.base import RouteRequest

UnitOf = Callable[[Ask | RouteRequest], str | None]  # None: it names none


def session_of(request: Ask | RouteRequest) -> str | None:
    """Its tenant's session: those of two tenants are two, whatever they are called."""
    return None if request.session is None else f"{request.tenant or ''}\0{request.session}"


def tenant_of(request: Ask | RouteRequest) -> str | None:
    return request.tenant


UNITS: dict[str, UnitOf] = {"session": session_of, "tenant": tenant_of}
