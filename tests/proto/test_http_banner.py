"""No answer of an aiohttp server names what it is made of."""

from aiohttp import web

from radixgate.proto.http_banner import without_versions
from radixgate.proto.http_errors import errors_as_json
from raw_client import RawClient, request


async def _streamed(http: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(http)
    await answer.write_eof()
    return answer


async def test_whole_answers_streams_and_errors_say_nothing_of_the_server() -> None:
    app = web.Application(middlewares=[errors_as_json])
    app.on_response_prepare.append(without_versions)
    app.router.add_get("/stream", _streamed)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with RawClient(runner.addresses[0][1]) as client:
        for path, status in (("/stream", 200), ("/nowhere", 404)):
            answer = await client.ask(request(path, method="GET"))
            assert (answer.status, answer.header("server")) == (status, None)
    await runner.cleanup()
