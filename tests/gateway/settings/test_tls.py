"""TLS on both sides: who is believed, who is let in, and what is said where it cannot be."""

import asyncio
import ssl
from pathlib import Path

import pytest

from authority import Authority
from front_door import connections_of
from radixgate.errors import ConfigError
from radixgate.gateway import door
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.settings.tls_config import TlsConfig
from radixgate.tls import client_context, server_context
from raw_client import RawClient, ask, request
from scripted_worker import ScriptedWorker, events, sse_end, sse_head
from small_gateway import CHAT, chat_body, small_gateway
from until import until


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("theirs"), "theirs")


def listening(authority: Authority, client_ca: str | None = None) -> GatewayRules:
    pair = authority.pair()
    return GatewayRules(
        tls=TlsConfig(tls_cert_path=pair.cert, tls_key_path=pair.key, tls_client_ca_path=client_ca)
    )


async def test_a_client_speaks_tls_on_the_hot_path_and_to_the_admin(ours: Authority) -> None:
    async with ScriptedWorker() as worker, small_gateway(rules=listening(ours)) as gateway:
        gateway.gateway.workers.add(worker.url)
        await until(lambda: len(gateway.gateway.workers.ready()) == 1)
        tls = client_context([ours.file], None, None)
        async with RawClient(gateway.port, tls=tls) as client:
            for _ in range(3):
                assert (await client.ask(request(CHAT, chat_body()))).status == 200
            worker.script = lambda request: [*sse_head(), *events(*"abc"), *sse_end()]
            reply = await client.ask(request(CHAT, chat_body(stream=True)))
            assert len(reply.events) == 5
            rows = await client.ask(request("/workers", method="GET"))
            assert rows.json["workers"][0]["state"] == "ready"
            assert await client.ended()
        async with RawClient(gateway.port, tls=tls) as client:
            refused = await client.ask(b"POST /generate HTTP/1.1\r\nbad header\r\n\r\n")
            assert refused.status == 400
            assert await client.ended()


async def test_a_slow_reader_over_tls_gets_every_byte(ours: Authority) -> None:
    texts = ["x" * 20_000] * 600  # more than the sockets keep
    async with ScriptedWorker() as worker, small_gateway(rules=listening(ours)) as gateway:
        gateway.gateway.workers.add(worker.url)
        await until(lambda: len(gateway.gateway.workers.ready()) == 1)
        worker.script = lambda request: [*sse_head(), *events(*texts), *sse_end()]
        tls = client_context([ours.file], None, None)
        async with RawClient(gateway.port, 4096, tls) as client:
            client.send(request(CHAT, chat_body(stream=True)))
            assert gateway.gateway.door is not None
            connections = connections_of(gateway.gateway.door.front)
            await until(lambda: any(front._paused for front in connections))
            reply = await client.answer()
        assert len(reply.events) == 602


async def test_in_the_clear_or_by_another_authority_nothing_is_answered(
    ours: Authority, theirs: Authority
) -> None:
    async with small_gateway(rules=listening(ours)) as gateway:
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await ask(gateway.port, request("/health", method="GET"))
        with pytest.raises(ssl.SSLCertVerificationError):
            await ask(
                gateway.port,
                request("/health", method="GET"),
                client_context([theirs.file], None, None),
            )


async def test_with_a_client_authority_only_its_clients_are_let_in(
    ours: Authority, theirs: Authority
) -> None:
    health = request("/health", method="GET")
    async with small_gateway(rules=listening(ours, ours.file)) as gateway:
        mine, other = ours.pair("client"), theirs.pair("client")
        known = client_context([ours.file], mine.cert, mine.key)
        assert (await ask(gateway.port, health, known)).status == 200
        for stranger in (
            client_context([ours.file], None, None),
            client_context([ours.file], other.cert, other.key),
        ):
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await ask(gateway.port, health, stranger)


async def test_a_handshake_that_is_not_made_ends(
    ours: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "_HANDSHAKE_S", 0.1)
    async with (
        small_gateway(rules=listening(ours)) as gateway,
        RawClient(gateway.port) as silent,
    ):
        assert await silent.ended()


async def test_a_worker_is_believed_by_its_authority_and_shown_our_certificate(
    ours: Authority,
) -> None:
    own, client = ours.pair(), ours.pair("gateway")
    secure = ScriptedWorker(tls=server_context(own.cert, own.key, ours.file))
    rules = GatewayRules(
        tls=TlsConfig(
            ca_cert_paths=(ours.file,),
            client_cert_path=client.cert,
            client_key_path=client.key,
        )
    )
    async with secure as worker, small_gateway([worker], rules=rules) as gateway:
        assert worker.url.startswith("https://")
        assert [(await gateway.chat(f"q{n}")).status for n in range(4)] == [200] * 4
        assert len(worker.requests) == 4


@pytest.mark.parametrize("fault", ["another authority", "another name", "no certificate of ours"])
async def test_a_worker_that_cannot_be_believed_gets_nothing(
    fault: str, ours: Authority, theirs: Authority
) -> None:
    own = ours.pair("elsewhere.test") if fault == "another name" else ours.pair()
    client_ca = ours.file if fault == "no certificate of ours" else None
    believed = theirs.file if fault == "another authority" else ours.file
    secure = ScriptedWorker(tls=server_context(own.cert, own.key, client_ca))
    rules = GatewayRules(tls=TlsConfig(ca_cert_paths=(believed,)))
    async with secure as worker, small_gateway(rules=rules) as gateway:
        member = gateway.gateway.workers.add(worker.url)
        await until(lambda: bool(member.trouble))
        assert worker.url in member.trouble
        assert not worker.requests
        assert not worker.admin_requests


def test_what_does_not_go_together_is_refused_by_name(ours: Authority, tmp_path: Path) -> None:
    pair = ours.pair()
    with pytest.raises(ConfigError, match="tls_cert_path and tls_key_path"):
        TlsConfig(tls_cert_path=pair.cert)
    with pytest.raises(ConfigError, match="tls_client_ca_path"):
        TlsConfig(tls_client_ca_path=ours.file)
    with pytest.raises(ConfigError, match="client_cert_path and client_key_path"):
        TlsConfig(client_key_path=pair.key)
    with pytest.raises(ConfigError, match=r"/nowhere\.pem"):
        TlsConfig(ca_cert_paths=("/nowhere.pem",)).for_workers()
    with pytest.raises(ConfigError, match="no certificate with its key"):
        TlsConfig(tls_cert_path=pair.cert, tls_key_path=pair.cert).for_clients()
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    with pytest.raises(ConfigError, match="no certificate of an authority"):
        TlsConfig(ca_cert_paths=(str(empty),)).for_workers()
