"""Between a parent and its children: their channel, and an admin's bytes on their way."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from radixgate.fleet.news import News
from radixgate.gateway.processes.admin_tunnel import Tunnel
from radixgate.gateway.processes.channel import Channel, child_end, parent_end
from radixgate.gateway.processes.messages import (
    Drain,
    Hello,
    Listens,
    SetUp,
    Standing,
    ToChild,
    Told,
    ToParent,
)
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from raw_client import RawClient, request
from until import until


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.unsent = 0
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def set_write_buffer_limits(self, high: int) -> None: ...


def written(*messages: ToParent) -> bytes:
    wire = Wire()
    channel: Channel[ToChild] = child_end(lambda channel, message: None, lambda channel: None)
    channel.connection_made(cast(asyncio.Transport, wire))
    for message in messages:
        channel.send(message)
    return wire.written


@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
def test_messages_arrive_whole_and_in_order_however_they_are_cut(size: int) -> None:
    messages: list[ToParent] = [
        Hello(1),
        Listens(),
        Standing(3, ["w"], {"w": "open"}),
        Told(News([], [], [])),
    ]
    data = written(*messages)
    got: list[ToParent] = []
    channel = parent_end(lambda channel, message: got.append(message), lambda channel: None)
    for start in range(0, len(data), size):
        channel.data_received(data[start : start + size])
    assert got == messages


def test_settings_arrive_as_they_were() -> None:
    sent = SetUp(2, GatewaySettings(), [])
    got: list[ToChild] = []
    wire = Wire()
    teller = parent_end(lambda channel, message: None, lambda channel: None)
    teller.connection_made(cast(asyncio.Transport, wire))
    teller.send(sent)
    child_end(lambda channel, message: got.append(message), lambda channel: None).data_received(
        wire.written
    )
    assert got == [sent]


def test_a_reader_that_is_hopelessly_behind_is_given_up() -> None:
    wire = Wire()
    channel = parent_end(lambda channel, message: None, lambda channel: None)
    channel.connection_made(cast(asyncio.Transport, wire))
    wire.unsent = 65 * 1024 * 1024
    channel.send(Drain())
    assert wire.aborted
    assert wire.written == b""


def test_a_length_that_cannot_be_is_no_message() -> None:
    channel = parent_end(lambda channel, message: None, lambda channel: None)
    with pytest.raises(ValueError, match="a message of"):
        channel.data_received(b"\xff\xff\xff\xff")


async def test_bytes_pass_both_ways_and_the_end_of_one_side_ends_the_other(tmp_path: Path) -> None:
    path = str(tmp_path / "admin.sock")
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 300000\r\n\r\n")
        writer.write(b"x" * 300_000)
        writer.close()

    loop = asyncio.get_running_loop()
    parent = await asyncio.start_unix_server(answer, path)
    door = await loop.create_server(lambda: Tunnel(path), "127.0.0.1", 0)
    port = door.sockets[0].getsockname()[1]
    try:
        async with RawClient(port) as client:
            reply = await client.ask(request("/workers", method="GET"))
            assert (reply.status, len(reply.body)) == (200, 300_000)
            assert await client.ended()
        assert seen[0].startswith(b"GET /workers HTTP/1.1\r\n")
    finally:
        door.close()
        parent.close()


async def test_without_a_parent_the_answer_is_503(tmp_path: Path) -> None:
    path = str(tmp_path / "nobody.sock")
    loop = asyncio.get_running_loop()
    door = await loop.create_server(lambda: Tunnel(path), "127.0.0.1", 0)
    try:
        async with RawClient(door.sockets[0].getsockname()[1]) as client:
            reply = await client.ask(request("/workers", method="GET"))
            assert reply.status == 503
            assert reply.json["error"]["message"] == "the parent process cannot be reached"
    finally:
        door.close()


async def test_a_client_that_leaves_takes_its_way_with_it(tmp_path: Path) -> None:
    path = str(tmp_path / "admin.sock")
    ended = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            pass
        ended.set()
        writer.close()

    loop = asyncio.get_running_loop()
    parent = await asyncio.start_unix_server(wait, path)
    door = await loop.create_server(lambda: Tunnel(path), "127.0.0.1", 0)
    try:
        async with RawClient(door.sockets[0].getsockname()[1]) as client:
            client.send(request("/workers", method="GET"))
            await asyncio.sleep(0)
        await until(ended.is_set)
    finally:
        door.close()
        parent.close()
