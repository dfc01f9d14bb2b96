"""How an aiohttp application answers errors: in the OpenAI shape, and without a traceback."""

import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from radixgate.errors import InternalFault, PayloadTooLarge, RadixgateError, RequestError
from radixgate.proto.error_body import error_body, retry_after

_log = logging.getLogger(__name__)


@web.middleware
async def errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Every error leaves in the OpenAI shape; only our own faults are logged with a traceback."""
    try:
        return await handler(request)
    except RadixgateError as error:
        return error_response(error)
    except web.HTTPRequestEntityTooLarge as error:
        return error_response(PayloadTooLarge(f"the body is too large: {error.text}", param="body"))
    except web.HTTPException as error:
        wrong = RequestError(f"{request.method} {request.path}: {error.reason}")
        wrong.status = error.status
        answer = error_response(wrong)
        if "Allow" in error.headers:
            answer.headers["Allow"] = error.headers["Allow"]
        return answer
    except web.RequestPayloadError as error:
        why = " ".join(str(error).split())
        return error_response(RequestError(f"the body cannot be read: {why}", param="body"))
    except ConnectionResetError:
        raise  # the client has left; there is nobody to answer
    except Exception:
        _log.exception("a request failed")
        return error_response(InternalFault())


def error_response(error: RadixgateError) -> web.Response:
    headers = {}
    after = retry_after(error)
    if after is not None:
        headers["retry-after"] = after
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return web.Response(
        body=error_body(error),
        status=error.status,
        content_type="application/json",
        headers=headers,
    )
