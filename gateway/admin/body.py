"""A request to the admin application has its body within a time, or is refused."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from radixgate.errors import RequestTimeout


def body_within(seconds: Callable[[], float]) -> Middleware:
    """Reads it before the handler does, which then finds it read. Raises RequestTimeout."""

    @web.middleware
    async def read(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        # The body of a question, or of a request that is nobody's, is waited for by nobody.
        wanted = request.method in ("POST", "PUT") and request.match_info.http_exception is None
        if wanted and request.can_read_body:
            try:
                async with asyncio.timeout(seconds()):
                    await request.read()
            except TimeoutError as exc:
                raise RequestTimeout(
                    f"the request's body did not arrive within {seconds():g} s", code="timeout"
                ) from exc
        return await handler(request)

    return read
