"""`radixgate bench` from settings to exit code."""

import asyncio
import json
import socket
from collections import Counter
from pathlib import Path

import pytest

from radixgate.clock import SystemClock
from radixgate.errors import ConfigError
from radixgate.loadgen.bench import run_bench
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.measurement import measure
from radixgate.loadgen.schedule import from_lines, hash_of
from timed_server import Asked, Script, TimedServer, native_event, sse

ANSWER = Script(
    (
        (0.0, sse(native_event("a", 1, prompt=9, cached=3))),
        (0.0, sse(native_event("ab", 2, prompt=9, cached=3, finish="length"), "[DONE]")),
    ),
    headers=(("x-radixgate-worker", "w1"),),
)
BAD = Script(((0.0, b"no"),), status=500)


def config(url: str, *, backend: str = "sglang", **further: str | int | bool) -> BenchConfig:
    settings: dict[str, object] = {
        "num_prompts": 4,
        "random_input_len": 5,
        "random_output_len": 2,
        "warmup_requests": 0,
        "disable_tqdm": True,
        **further,
    }
    return BenchConfig(backend=backend, base_url=url, **settings)  # type: ignore[arg-type]


async def bench(settings: BenchConfig) -> int:
    """`run_bench` has a loop of its own, so it runs beside the server's."""
    return await asyncio.to_thread(run_bench, settings)


async def test_a_run_prints_its_hash_and_table_and_writes_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line, schedule = tmp_path / "result.jsonl", tmp_path / "schedule.jsonl"
    async with TimedServer(lambda _: ANSWER) as server:
        settings = config(
            server.url,
            output_file=str(line),
            schedule_file=str(schedule),
            output_details=True,
            warmup_requests=2,
        )
        assert await bench(settings) == 0
    shown = capsys.readouterr().out
    wanted = hash_of(schedule_of(settings))
    assert f"schedule: 4 requests, xxh3_128 {wanted}" in shown
    assert "Successful requests:                     4\n" in shown
    assert "Requests by w1:                          4\n" in shown
    result = json.loads(line.read_text())
    assert (result["completed"], result["total_input_tokens"]) == (4, 36)
    assert result["total_output_tokens"] == 8
    assert result["cached_token_share"] == pytest.approx(1 / 3)
    assert result["schedule_hash"] == wanted
    assert result["output_lens"] == [2, 2, 2, 2]
    assert hash_of(from_lines(schedule.read_bytes())) == wanted
    assert Counter(asked.path for asked in server.asked) == {"/generate": 6}


async def test_the_collection_before_a_run_makes_no_request_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It lasts as long as the process has objects: here a thousand seconds."""
    past_s = 0.0

    class Leaping:
        def now(self) -> float:
            return SystemClock.now() + past_s

    def collect() -> None:
        nonlocal past_s
        past_s += 1_000.0

    monkeypatch.setattr("gc.collect", collect)
    async with TimedServer(lambda _: ANSWER) as server:
        settings = config(server.url)
        run = await measure(settings, schedule_of(settings), Leaping())
    assert past_s == 1_000.0
    assert max(r.t_dispatch_s - r.t_intended_s for r in run.records) < 1_000.0


async def test_the_server_gets_the_schedule_and_only_it() -> None:
    async with TimedServer(lambda _: ANSWER) as server:
        settings = config(server.url, warmup_requests=3, max_concurrency=1)
        await measure(settings, schedule_of(settings), SystemClock())
    texts = [asked.body["text"] for asked in server.asked]
    assert all(text.startswith("warm-up ") for text in texts[:3])
    assert texts[3:] == [one.prompt.native()["text"] for one in schedule_of(settings)]


async def test_the_same_schedule_sends_the_same_bytes_twice() -> None:
    sent: list[list[bytes]] = []
    for _ in range(2):
        async with TimedServer(lambda _: ANSWER) as server:
            settings = config(server.url, max_concurrency=1, warmup_requests=2)
            await measure(settings, schedule_of(settings), SystemClock())
        sent.append([asked.raw_body for asked in server.asked])
    assert sent[0] == sent[1]


async def test_failures_are_flagged_and_some_success_is_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = iter([BAD, ANSWER, BAD, ANSWER])
    async with TimedServer(lambda _: next(answers)) as server:
        assert await bench(config(server.url)) == 0
    shown = capsys.readouterr().out
    assert "Successful requests:                     2\n" in shown
    assert "  HTTP 500:                              2\n" in shown
    assert "FAILED: 2 of 4 requests" in shown


async def test_no_success_is_exit_code_one() -> None:
    async with TimedServer(lambda _: BAD) as server:
        assert await bench(config(server.url)) == 1


async def test_a_warm_up_that_nobody_answers_ends_the_run_with_its_cause() -> None:
    async with TimedServer(lambda _: BAD) as server:
        with pytest.raises(ConfigError, match=r"answered none of 2 .* HTTP 500 \(no\)"):
            await bench(config(server.url, warmup_requests=2))
    assert len(server.asked) == 2


def test_a_server_that_is_not_there_is_said_so() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with pytest.raises(ConfigError, match="connection refused"):
            run_bench(config(url, warmup_requests=1))


async def test_flush_comes_between_warm_up_and_measurement() -> None:
    async with TimedServer(lambda _: ANSWER) as server:
        await bench(config(server.url, flush_cache=True, warmup_requests=1, num_prompts=2))
    paths = [asked.path for asked in server.asked]
    assert paths == ["/generate", "/flush_cache", "/generate", "/generate"]


async def test_a_flush_that_is_refused_ends_the_run() -> None:
    def script(asked: Asked) -> Script:
        return BAD if asked.path == "/flush_cache" else ANSWER

    async with TimedServer(script) as server:
        with pytest.raises(ConfigError, match="/flush_cache answered 500"):
            await bench(config(server.url, flush_cache=True))


MODELS = Script(((0.0, b'{"data": [{"id": "first"}, {"id": "second"}]}'),), content_type="text/x")


async def test_the_first_model_is_asked_for_unless_one_is_named() -> None:
    async with TimedServer(lambda asked: MODELS if "models" in asked.path else ANSWER) as server:
        for model in (None, "mine"):
            settings = config(server.url, backend="vllm", num_prompts=1)
            if model is not None:
                settings = config(server.url, backend="vllm", num_prompts=1, model=model)
            await measure(settings, schedule_of(settings), SystemClock())
    asked = [one.body["model"] for one in server.asked if "completions" in one.path]
    assert asked == ["first", "mine"]


@pytest.mark.parametrize(
    "models", [pytest.param(BAD, id="an-error"), pytest.param(ANSWER, id="not-a-list")]
)
async def test_no_model_to_ask_for_names_the_flag(models: Script) -> None:
    async with TimedServer(lambda _: models) as server:
        with pytest.raises(ConfigError, match="give --model"):
            await bench(config(server.url, backend="vllm"))


async def test_a_prompt_that_the_endpoint_cannot_take_ends_the_run_before_it_began() -> None:
    async with TimedServer(lambda _: ANSWER) as server:
        settings = config(server.url, backend="vllm-chat", dataset_name="random-ids", model="m")
        with pytest.raises(ConfigError, match="cannot be sent as chat"):
            await bench(settings)
    assert server.asked == []


@pytest.mark.parametrize("body", ["[]", "{"])
def test_an_extra_body_must_be_an_object(body: str) -> None:
    with pytest.raises(ConfigError, match="must be a JSON object"):
        run_bench(config("http://127.0.0.1:9", extra_request_body=body))
