"""Which of the admin application's routes need which key."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from radixgate.gateway.attempt.caller import ANYONE, Caller
from radixgate.gateway.entry.key_ring import KeyRing

CALLER = web.RequestKey("caller", Caller)
# Probes of an orchestrator carry no key, and learn nothing from these.
_OPEN = frozenset(("/health", "/liveness", "/readiness", "/openapi.json"))
# What a client needs to generate. Everything else, and what does not exist, is an admin's.
_TOKENS = ("/tokenize", "/detokenize", "/v1/tokenize", "/v1/detokenize")
_CLIENTS = frozenset(("/v1/models", "/get_model_info", *_TOKENS))
# By the id of a stored one, and by a model's name.
_CLIENTS_BELOW = ("/v1/responses/", "/v1/models/")


def key_check(keys: Callable[[], KeyRing]) -> Middleware:
    """Lets a request through with its caller in `request[CALLER]`, or raises 401 or 403.

    `keys`: those that hold now.
    """

    @web.middleware
    async def check(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        request[CALLER] = _caller(keys(), request)
        return await handler(request)

    return check


def _caller(keys: KeyRing, request: web.Request) -> Caller:
    if request.path in _OPEN:
        return ANYONE
    given = request.headers.getall("Authorization", ())
    # Two of them are no key, as on the generation endpoints.
    authorization = ",".join(given).encode("utf-8", "surrogateescape") if given else None
    if request.path in _CLIENTS or request.path.startswith(_CLIENTS_BELOW):
        return keys.caller(authorization)
    return keys.admin(authorization)
