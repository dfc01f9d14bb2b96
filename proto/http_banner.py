"""What an aiohttp server says of itself: nothing that helps to look for its weak points."""

from aiohttp import web


async def without_versions(request: web.Request, answer: web.StreamResponse) -> None:
    """For `on_response_prepare`: else each answer names the versions of Python and aiohttp."""
    answer.headers.pop("Server", None)
