"""Events of a stream that flows go the short way, and nobody can tell by what they get."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from attached_gateway import attached_gateway
from attached_worker import AttachedWorker
from clocks import FakeClock
from items import item
from radixgate.gateway.attempt.answer_progress import STREAM_CREDIT
from radixgate.gateway.attempt.flow import NOTED_TOKENS
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.settings.observe_config import ObserveConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.proto.generated import worker_pb2 as pb
from raw_client import Answer, RawClient, request
from small_gateway import CHAT, SmallGateway, chat_body
from until import until

WORDS = [" one", " two", " three", " four", ""]  # the last brings a token and no text


@asynccontextmanager
async def asked(
    gateway: SmallGateway, worker: AttachedWorker, version: str = "1.1"
) -> AsyncIterator[tuple[RawClient, pb.Submit]]:
    """A client of a streamed chat, and what its worker has got."""
    async with RawClient(gateway.port) as client:
        client.send(request(CHAT, chat_body(stream=True), version=version))
        while (command := await worker.next_command()).WhichOneof("kind") != "submit":
            pass
        yield client, command.submit


async def answer_in_columns(worker: AttachedWorker, handle: int) -> None:
    """A first item with counts, a token for each of WORDS, an end."""
    await worker.send(item(" zero", ids=[1], counts=(3, 0, 1), handle=handle))
    for number, word in enumerate(WORDS):
        await worker.send(item(word, ids=[number], handle=handle), columns=True)
    await worker.send(item("", finish="stop", counts=(3, 0, 6), handle=handle))


def texts(answer: Answer) -> list[str]:
    assert answer.events[-1] == b"[DONE]"
    return [event.split(b'"content":"')[1].split(b'"')[0].decode() for event in answer.events[:-1]]


@pytest.mark.parametrize("told", [False, True], ids=["", "and is told of"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_an_answer_and_its_times_are_those_of_the_long_way(
    version: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    short_way, in_a_row = ChunkLane.send, LoopTurn.put_row

    def send(lane: ChunkLane, event: bytes) -> None:
        sent.append(event)
        short_way(lane, event)

    def put_row(turn: LoopTurn, row: dict[asyncio.Transport, bytes]) -> None:
        sent.extend(row.values())
        in_a_row(turn, row)

    monkeypatch.setattr(ChunkLane, "send", send)
    monkeypatch.setattr(LoopTurn, "put_row", put_row)
    log = str(tmp_path / "requests") if told else None
    rules = GatewayRules(observe=ObserveConfig(request_log=log))
    async with attached_gateway(rules=rules) as (gateway, worker):
        async with asked(gateway, worker, version=version) as (client, submit):
            await answer_in_columns(worker, submit.handle)
            answer = await client.answer()
        assert texts(answer) == [" zero", " one", " two", " three", " four", ""]
        # Between seven pieces, the last of which is the end of the stream.
        assert gateway.gateway.headquarters.path.metrics.itl.count == 6
    # The first single token shows whether there is a lane; HTTP/1.0 knows no chunks.
    by_lane = [] if version == "1.0" else [b" two", b" three", b" four", b'"stop"', b"[DONE]"]
    assert len(sent) == len(by_lane)
    assert all(part in event for part, event in zip(by_lane, sent, strict=True))


async def test_an_item_of_another_kind_comes_in_its_place_and_the_rest_flows_on() -> None:
    async with attached_gateway() as (gateway, worker), asked(gateway, worker) as (client, submit):
        await worker.send(item(" zero", ids=[1], counts=(3, 0, 1), handle=submit.handle))
        for words in (" one", " two", ("three ", 2), " four", " five", " six"):
            text, tokens = words if isinstance(words, tuple) else (words, 1)
            ids = list(range(tokens))
            await worker.send(item(text, ids=ids, handle=submit.handle), columns=True)
        await worker.send(item("", finish="stop", counts=(3, 0, 8), handle=submit.handle))
        answer = await client.answer()
    said = [" zero", " one", " two", "three ", " four", " five", " six", ""]
    assert texts(answer) == said


async def test_credit_goes_back_for_what_has_flowed() -> None:
    async with attached_gateway() as (gateway, worker), asked(gateway, worker) as (_, submit):
        await worker.send(item(" zero", ids=[1], counts=(3, 0, 1), handle=submit.handle))
        step = [item(" on", ids=[1], handle=submit.handle)] * NOTED_TOKENS
        for _ in range(STREAM_CREDIT // 2 // NOTED_TOKENS + 1):
            await worker.send(*step, columns=True)
        credits = (await worker.next_command()).credits
    # All of it but what the last NOTED_TOKENS may hold back.
    assert list(credits.handles) == [submit.handle]
    assert STREAM_CREDIT // 2 <= credits.tokens[0] < STREAM_CREDIT // 2 + 2 * NOTED_TOKENS


async def test_a_client_that_leaves_is_written_to_no_more() -> None:
    async with attached_gateway() as (gateway, worker):
        async with asked(gateway, worker) as (client, submit):
            await worker.send(item(" zero", ids=[1], counts=(3, 0, 1), handle=submit.handle))
            for word in WORDS:
                await worker.send(item(word, ids=[1], handle=submit.handle), columns=True)
            client.close()
            await until(lambda: worker.stream.in_flight == 0)
        assert (await worker.next_command()).abort.handle == submit.handle
        await worker.send(item(" late", ids=[1], handle=submit.handle), columns=True)
        assert gateway.in_flight() == 0


async def test_silence_counts_from_the_last_event_that_went_by_it() -> None:
    clock, patience = FakeClock(), 40.0
    async with (
        attached_gateway(clock=clock, stream_idle_timeout_secs=patience, retry_max_retries=0) as (
            gateway,
            worker,
        ),
        asked(gateway, worker) as (client, submit),
    ):
        sweep = gateway.gateway.headquarters.path.deadlines.sweep
        await worker.send(item(" zero", ids=[1], counts=(3, 0, 1), handle=submit.handle))
        for _ in range(12):
            clock.advance(30.0)
            sweep()
            await worker.send(item(" on", ids=[1], handle=submit.handle), columns=True)
        clock.advance(39.0)
        sweep()
        assert worker.stream.in_flight == 1
        clock.advance(1.0)
        sweep()
        answer = await client.answer()
        assert sum(b'" on"' in event for event in answer.events) == 12
        assert b"w0 sent nothing for 40 s" in answer.events[-2]
        assert answer.events[-1] == b"[DONE]"


async def test_what_breaks_off_in_a_lane_ends_in_one_error_event() -> None:
    async with (
        attached_gateway(retry_max_retries=0) as (gateway, worker),
        asked(gateway, worker) as (client, submit),
    ):
        await worker.send(item(" zero", ids=[1], counts=(3, 0, 1), handle=submit.handle))
        await worker.send(item(" one", ids=[1], handle=submit.handle), columns=True)
        await worker.send(item(" two", ids=[1], handle=submit.handle), columns=True)
        await worker.die()
        answer = await client.answer()
        assert [b'"content"' in event for event in answer.events] == [True] * 3 + [False] * 2
        assert b"broke off: connection reset" in answer.events[3]
        assert answer.events[4] == b"[DONE]"
