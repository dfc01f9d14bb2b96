"""One line a request, whatever becomes of it."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from own_faults import Faults
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.observe_config import ObserveConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import RawClient, request
from scripted_worker import (
    Hang,
    Reset,
    ScriptedWorker,
    events,
    json_answer,
    sse_end,
    sse_head,
)
from small_gateway import CHAT, chat_body
from told_gateway import Kept, told_gateway
from until import until

OUTCOMES = ("ok", "client_error", "upstream_error", "client_disconnect", "rejected")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_stream_is_told_with_its_tokens_and_times(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    async with ScriptedWorker() as worker:
        worker.script = lambda request: [*sse_head(), *events("a", "b"), *sse_end(usage=(11, 2))]
        async with told_gateway([worker], ObserveConfig(request_log=str(path))) as small:
            await small.post(CHAT, chat_body("a secret", stream=True), "x-request-id: mine")
    (line,) = lines_of(path)
    assert line["id"] == "mine"
    assert (line["outcome"], line["status"], line["attempts"]) == ("ok", 200, 1)
    assert (line["model"], line["path"], line["stream"]) == ("toy", CHAT, True)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (11, 2)
    assert line["worker"] == worker.url.removeprefix("http://")
    assert line["reason"] == "rotation"
    assert 0.0 <= line["read_s"] <= line["ttft_s"] <= line["e2e_s"]
    assert "secret" not in path.read_text()


async def test_every_ending_has_its_line_and_they_add_up_with_the_metrics() -> None:
    kept = Kept()
    async with ScriptedWorker() as worker, told_gateway([worker], tellers=[kept]) as small:
        await small.chat("fine")
        assert (await small.post(CHAT, {"messages": []})).status == 400
        worker.script = lambda request: json_answer({"error": {"message": "no"}}, 404)
        await small.chat("refused")
        worker.script = lambda request: [*sse_head(), *events("a"), Reset()]
        await small.post(CHAT, chat_body(stream=True))
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        async with RawClient(small.port) as client:
            client.writer.write(request(CHAT, chat_body(stream=True)))
            await client.reader.readuntil(b'"a"')
        await until(lambda: len(kept.stories) == 5)
        await small.gateway.workers.find(worker.url).handle.flush_cache()
        small.gateway.workers.pause(small.gateway.workers.find(worker.url), paused=True)
        assert (await small.chat("nobody")).status == 503
        told = [story.outcome.value for story in kept.stories]
        assert told == [
            "ok",
            "client_error",
            "client_error",
            "upstream_error",
            "client_disconnect",
            "rejected",
        ]
        for outcome in OUTCOMES:
            counted = await small.counter("radixgate_requests_total", outcome=outcome)
            assert counted == told.count(outcome), outcome


async def test_who_is_turned_away_at_the_gate_is_told_of_too() -> None:
    kept = Kept()
    rules = GatewayRules(
        access=AccessConfig(api_key="k"),
        limits=LimitsConfig(max_concurrent_requests=1, queue_size=1),
    )
    key = "authorization: Bearer k"
    async with (
        ScriptedWorker() as worker,
        told_gateway([worker], tellers=[kept], rules=rules) as small,
    ):
        stranger = await small.post(CHAT, chat_body())
        assert (stranger.status, kept.stories[0].outcome.value) == (401, "client_error")
        assert stranger.header("x-request-id") == kept.stories[0].request_id
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        async with RawClient(small.port) as first, RawClient(small.port) as second:
            first.writer.write(request(CHAT, chat_body(stream=True), headers=(key,)))
            await first.reader.readuntil(b'"a"')
            second.writer.write(request(CHAT, chat_body(), headers=(key,)))
            await until(lambda: small.gateway.metrics.read_waiting() == 1)
            assert (await small.post(CHAT, chat_body(), key)).status == 429
            assert kept.stories[-1].outcome.value == "rejected"
            second.writer.close()
            await until(lambda: len(kept.stories) == 3)
            assert kept.stories[-1].outcome.value == "client_disconnect"
        await until(lambda: len(kept.stories) == 4)
        told = Counter(story.outcome for story in kept.stories)
        counted = small.gateway.metrics.requests
        assert told == {outcome: times for outcome, times in counted.items() if times}


async def test_who_comes_when_the_gateway_ends_is_told_of_too() -> None:
    kept = Kept()
    async with ScriptedWorker() as worker, told_gateway([worker], tellers=[kept]) as small:
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        async with RawClient(small.port) as first:
            first.writer.write(request(CHAT, chat_body(stream=True)))
            await first.reader.readuntil(b'"a"')
            door = small.gateway.door
            assert door is not None
            door.front.drain(small.gateway.headquarters.path.closed_door())
            refused = await small.post(CHAT, chat_body(), "x-request-id: late")
            assert refused.status == 503
            assert [(one.status, one.outcome.value) for one in kept.stories] == [(503, "rejected")]
            assert kept.stories[0].request_id == "late"
        await until(lambda: len(kept.stories) == 2)
        assert small.gateway.metrics.requests[kept.stories[0].outcome] == 1


async def test_a_stream_that_a_fault_of_ours_broke_is_told_as_it_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = Kept()
    async with ScriptedWorker() as worker, told_gateway([worker], tellers=[kept]) as small:
        worker.script = lambda request: [*sse_head(), *events("a", "b", gap_s=0.005), *sse_end()]
        Faults(monkeypatch).strike(ChunkLane, "send")
        await small.post(CHAT, chat_body(stream=True))
        assert [(one.status, one.outcome.value) for one in kept.stories] == [
            (200, "upstream_error")
        ]
        assert small.gateway.metrics.requests[kept.stories[0].outcome] == 1


async def test_a_request_that_went_on_elsewhere_is_told_with_both() -> None:
    kept = Kept()
    async with (
        ScriptedWorker() as bad,
        ScriptedWorker() as good,
        told_gateway([bad, good], tellers=[kept]) as small,
    ):
        bad.script = lambda request: [Reset()]
        for _ in range(2):
            assert (await small.chat()).status == 200
        story = max(kept.stories, key=lambda story: len(story.attempts))
        outcomes = [told.outcome for told in story.attempts]
        assert outcomes == ["failed", "ok"]
        assert story.outcome.value == "ok"
        assert story.request_id.startswith("rg-")


async def test_lines_that_the_disk_refuses_are_counted_and_nobody_waits() -> None:
    config = ObserveConfig(request_log="/dev/full")
    async with ScriptedWorker() as worker, told_gateway([worker], config) as small:
        assert (await small.chat()).status == 200
        await until(lambda: small.gateway.metrics.read_dropped() == {"requests": 1})
        assert await small.counter("radixgate_log_lines_dropped_total", log="requests") == 1


async def test_names_of_ours_are_those_that_the_client_is_told() -> None:
    kept = Kept()
    async with ScriptedWorker() as worker, told_gateway([worker], tellers=[kept]) as small:
        answer = await small.chat()
        assert answer.header("x-request-id") == kept.stories[0].request_id
        assert worker.requests[-1].header("x-request-id") == kept.stories[0].request_id


async def test_a_slow_reader_is_waited_for_as_ever() -> None:
    kept = Kept()
    piece = "x" * 400_000
    async with ScriptedWorker() as worker, told_gateway([worker], tellers=[kept]) as small:
        worker.script = lambda request: [*sse_head(), *events(*[piece] * 25), *sse_end()]
        async with RawClient(small.port, read_limit=2**14) as client:
            client.writer.write(request(CHAT, chat_body(stream=True)))
            # More than what fits on the way there: the worker is not read before this goes on.
            await asyncio.sleep(0.05)
            assert not kept.stories
            read = bytearray()
            while b"[DONE]" not in read[-100:]:
                read += await client.reader.read(65_536)
            assert read.count(b"delta") == 26
        assert kept.stories[0].outcome.value == "ok"
