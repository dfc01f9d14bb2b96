"""What an aiohttp server says of itself: nothing that helps to look for its weak points."""

from aiohttp import web

from radixgate.errors import InternalFault, RequestError
from radixgate.proto.http_errors import error_response

_NAME = "radixgate"  # where one must stand, as the library else puts its own and its version
_SAID_CHARS = 200


async def without_versions(request: web.Request, answer: web.StreamResponse) -> None:
    """For `on_response_prepare`: else each answer names the versions of Python and aiohttp."""
    answer.headers.pop("Server", None)


class Runner(web.AppRunner):
    """Answers what is no HTTP as any other wrong request: such answers never come to an
    application, and aiohttp's own are plain text below its banner.

    There is no public way to this: what is private here is why pyproject.toml bounds the version.
    """

    __slots__ = ()

    async def _make_server(self) -> web.Server:
        return _Server(await super()._make_server())


class _Server(web.Server):
    def __init__(self, made: web.Server) -> None:
        super().__init__(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            **made._kwargs,
        )

    def __call__(self) -> web.RequestHandler:
        return _Handler(self, loop=self._loop, **self._kwargs)


class _Handler(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        super().handle_error(request, status, exc, message)  # it logs, and may find it too late
        if status >= 500:
            answer = error_response(InternalFault())
        else:
            said = " ".join((message or "").split())[:_SAID_CHARS]
            wrong = RequestError(f"this is not a request: {said}")
            wrong.status = status
            answer = error_response(wrong)
        answer.headers["Server"] = _NAME
        answer.force_close()
        return answer
