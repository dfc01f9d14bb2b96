"""An object as the JSON answer of an aiohttp handler."""

import msgspec
from aiohttp import web


def json_answer(value: object, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json"
    )
