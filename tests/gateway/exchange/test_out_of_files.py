"""A gateway that may open no more files: its workers are not to blame, and clients may retry."""

import asyncio
import errno
import socket

import pytest

from clocks import FakeClock
from radixgate.errors import OutOfFiles
from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.upstream import pool as pools
from radixgate.gateway.upstream.dial import Address, first_connected
from scripted_worker import ScriptedWorker
from small_gateway import SmallGateway, small_gateway


async def no_file(*_: object) -> socket.socket:
    raise OSError(errno.EMFILE, "Too many open files")


async def shown(gateway: SmallGateway) -> tuple[str, str]:
    (row,) = (await gateway.get("/workers")).json["workers"]
    return row["state"], row["breaker"]


async def test_a_connection_that_we_may_not_open_is_no_failure_of_its_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = GatewayRules(reliability=ReliabilityConfig(cb_failure_threshold=1))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        monkeypatch.setattr(pools, "dial", no_file)
        replies = [await gateway.chat() for _ in range(3)]
        assert {reply.status for reply in replies} == {503}
        assert {reply.header("retry-after") for reply in replies} == {"1"}
        assert "may open no more files" in replies[0].json["error"]["message"]
        assert await shown(gateway) == ("ready", "closed")
        assert (
            "radixgate_worker_failures_total{" not in (await gateway.get("/metrics")).body.decode()
        )
        monkeypatch.undo()
        assert (await gateway.chat()).status == 200


async def test_a_check_that_opens_no_connection_takes_no_worker_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        (member,) = gateway.gateway.workers.members()
        monkeypatch.setattr(pools, "dial", no_file)
        monkeypatch.setattr(pools.UpstreamPool, "take_idle", lambda self: None)
        member.trouble = ""
        member.check_now.set()
        async with asyncio.timeout(10):
            while not member.trouble:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert member.state is WorkerState.READY


async def test_the_log_has_it_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    pool = pools.UpstreamPool(
        *("127.0.0.1", 1),
        clock=clock,
        deadlines=Deadlines(clock),
        turn=LoopTurn(),
        max_idle=1,
        idle_timeout_s=1.0,
    )
    monkeypatch.setattr(pools, "dial", no_file)
    lines = []
    for _ in range(5):
        with pytest.raises(OutOfFiles):
            await pool.connect(1.0)
        lines.append(len(caplog.records))
        clock.advance(4.0)
    assert lines == [1, 1, 1, 2, 2]
    assert "may open no more files, nor a connection to http://127.0.0.1:1" in caplog.text


async def test_of_several_addresses_none_is_blamed_either() -> None:
    with pytest.raises(OSError, match="Too many open files") as raised:
        await first_connected([Address(2, ("first",)), Address(2, ("second",))], no_file)
    assert raised.value.errno == errno.EMFILE
