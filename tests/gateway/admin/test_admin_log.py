"""What clients send that is no HTTP leaves no traceback, and none of its bytes, in the log."""

import pytest

from raw_client import RawClient, request
from small_gateway import small_gateway


async def test_bytes_behind_an_admin_request_are_refused_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = b"GET /x HTTP/1.1\r\nHost: a\r\nAuthorization : Bearer SECRET\r\n\r\n"
    async with small_gateway() as gateway, RawClient(gateway.port) as client:
        # Behind a request whose body is still awaited they come to the application's parser.
        whole = request("/workers", b"{}")
        client.send(whole[:-1])
        client.send(whole[-1:] + bad)
        assert (await client.answer()).status == 400
    assert "SECRET" not in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
