"""Cases LG1 and LG3: our own figures against a server whose timing is known.

In virtual time: what our code does with the times is judged here. What it takes of them itself is
told by test_exact_times.
"""

import socket
from itertools import accumulate

import pytest

from radixgate.analysis import latency
from radixgate.analysis.records import RequestRecord
from radixgate.analysis.summary import summarise
from radixgate.loadgen.answers import Answer, read_answer
from radixgate.loadgen.client import StreamClient
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.exchange import Exchange
from radixgate.loadgen.measurement import measure
from radixgate.loadgen.progress import NoProgress
from radixgate.loadgen.prompts import TextPrompt
from radixgate.loadgen.report import table
from radixgate.loadgen.runner import Runner
from radixgate.loadgen.schedule import PlannedPrompt, Schedule, ScheduledRequest, plan
from radixgate.loadgen.targets import BodyFields, target_for
from timed_server import Asked, Script, TimedServer, chat_chunk, sse, usage_event
from virtual_time import LoopClock, in_virtual_time

TOLERANCE_S = 0.001


def asking(*texts: str) -> Schedule:
    return plan([PlannedPrompt(TextPrompt(text), 8, 10) for text in texts], [0.0] * len(texts))


def one_at_a_time(url: str) -> BenchConfig:
    return BenchConfig(
        backend="openai-chat", base_url=url, model="m", warmup_requests=0, max_concurrency=1
    )


LG1 = Script(
    (
        (0.050, sse(chat_chunk("", role="assistant", tokens=0))),
        (0.200, sse(chat_chunk("one two three", tokens=3))),
        (0.300, sse(chat_chunk(" four five", tokens=5))),
        (0.360, sse(chat_chunk(" six", tokens=6))),
        (0.362, sse(usage_event(6))),
        (0.365, sse("[DONE]")),
    )
)


@pytest.mark.slow
@in_virtual_time
async def test_lg1_one_chunk_is_not_one_token() -> None:
    async with TimedServer(lambda _: LG1) as server:
        run = await measure(one_at_a_time(server.url), asking(*"abcde"), LoopClock())
    for record in run.records:
        assert latency.ttft_s(record) == pytest.approx(0.200, abs=TOLERANCE_S)
        assert latency.e2e_s(record) == pytest.approx(0.360, abs=TOLERANCE_S)
        assert latency.tpot_s(record) == pytest.approx(0.032, abs=TOLERANCE_S)
        assert latency.itl_tokens_s(record) == pytest.approx(
            [0, 0, 0.05, 0.05, 0.06], abs=TOLERANCE_S
        )
        assert record.output_tokens == 6
    assert len(run.records) == 5
    assert run.summary.itl is not None
    assert run.summary.itl.mean == pytest.approx(0.032, abs=TOLERANCE_S)


GOOD = Script(
    (
        *((0.100 + 0.4 * n / 9, sse(chat_chunk(f" w{n}", tokens=n + 1))) for n in range(10)),
        (0.500, sse(chat_chunk(finish="length", tokens=10), usage_event(10), "[DONE]")),
    )
)
SCRIPTS = {
    "good": GOOD,
    "HTTP 500": Script(((0.0, b'{"error": {"message": "boom"}}'),), status=500),
    "error event": Script(((0.0, sse({"error": {"message": "boom"}}, "[DONE]")),)),
    "empty answer": Script(((0.0, sse("[DONE]")),)),
    "cut off": Script(
        tuple((0.01 * n, sse(chat_chunk(f" w{n}", tokens=n + 1))) for n in range(3)), end="cut"
    ),
    "timeout": Script(((0.0, sse(chat_chunk(" w", tokens=1))),), end="hang"),
    "one token": Script(
        ((0.100, sse(chat_chunk(" w", finish="length", tokens=1), usage_event(1), "[DONE]")),)
    ),
    "no text": Script(
        ((0.100, sse(chat_chunk(finish="stop", tokens=0), usage_event(0), "[DONE]")),)
    ),
}
LG3_ASKED = (
    *["good"] * 6,
    "HTTP 500",
    "connection refused",
    "error event",
    "empty answer",
    "cut off",
    "timeout",
    "one token",
    "no text",
)


def by_prompt(asked: Asked) -> Script:
    return SCRIPTS[asked.body["messages"][0]["content"]]


async def lg3_records() -> list[RequestRecord]:
    """One of the requests goes to a port where nobody listens; all else is one run."""
    clock = LoopClock()
    target = target_for("openai-chat", BodyFields.of(BenchConfig(), "m", {}))
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound and not listening: refused
        nowhere_url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        async with (
            TimedServer(by_prompt) as server,
            StreamClient(server.url, clock, idle_timeout_s=0.6) as there,
            StreamClient(nowhere_url, clock, idle_timeout_s=0.6) as nowhere,
        ):

            async def send(request: ScheduledRequest) -> Exchange:
                refused = request.prompt == TextPrompt("connection refused")
                client = nowhere if refused else there
                return await client.exchange(target.path, target.body(request))

            def read(exchange: Exchange) -> Answer:
                return read_answer(target, exchange)

            runner = Runner(send, read, clock, NoProgress())
            return await runner.play(asking(*LG3_ASKED))


@in_virtual_time
async def test_lg3_failures_are_no_fast_successes() -> None:
    run = summarise(await lg3_records())
    assert (run.completed, run.failed) == (8, 6)
    assert run.failures == {
        "HTTP 500": 1,
        "connection refused": 1,
        "cut off": 1,
        "empty answer": 1,
        "error event": 1,
        "timeout": 1,
    }
    assert run.ttft is not None
    assert run.ttft.n == 7  # the empty one has no first token
    assert (run.ttft.min, run.ttft.p50) == pytest.approx((0.100, 0.100), abs=TOLERANCE_S)
    assert run.itl is not None
    assert run.itl.min >= 0
    assert run.output_tokens == 6 * 10 + 1 + 0
    assert run.duration_s == pytest.approx(0.5, abs=TOLERANCE_S)
    shown = table(BenchConfig(), run)
    assert "FAILED: 6 of 14 requests" in shown
    assert all(f"  {failure}:" in shown for failure in run.failures)


@pytest.mark.slow
@in_virtual_time
async def test_scripted_times_are_measured_with_fifty_streams_at_once() -> None:
    """TTFT 50 ms, ten tokens 20 ms apart, over connections that exist."""
    script = Script(
        (
            *((0.050 + 0.020 * n, sse(chat_chunk(f" w{n}", tokens=n + 1))) for n in range(10)),
            (0.230, sse(chat_chunk(finish="length", tokens=10), "[DONE]")),
        )
    )
    target = target_for("openai-chat", BodyFields.of(BenchConfig(), "m", {}))
    clock = LoopClock()
    async with (
        TimedServer(lambda _: script) as server,
        StreamClient(server.url, clock, idle_timeout_s=5.0) as client,
    ):

        async def send(request: ScheduledRequest) -> Exchange:
            return await client.exchange(target.path, target.body(request))

        def read(exchange: Exchange) -> Answer:
            return read_answer(target, exchange)

        for _ in range(2):  # the first run makes the connections
            records = await Runner(send, read, clock, NoProgress()).play(asking(*["a"] * 50))
    run = summarise(records)
    assert run.completed == 50
    assert {asked.connection for asked in server.asked} == set(range(1, 51))
    assert run.ttft is not None
    assert run.tpot is not None
    assert (run.ttft.min, run.ttft.p99) == pytest.approx((0.050, 0.050), abs=TOLERANCE_S)
    assert (run.tpot.min, run.tpot.p99) == pytest.approx((0.020, 0.020), abs=TOLERANCE_S)


@pytest.mark.slow
@in_virtual_time
async def test_coordinated_omission_is_told_apart_over_real_sockets() -> None:
    """100 ms service, 20 a second, one place: response grows, service does not."""
    script = Script(((0.1, sse(chat_chunk("a", finish="stop", tokens=1), "[DONE]")),))
    schedule = plan(
        [PlannedPrompt(TextPrompt("a"), 1, 1) for _ in range(20)], [n / 20 for n in range(20)]
    )
    async with TimedServer(lambda _: script) as server:
        run = await measure(one_at_a_time(server.url), schedule, LoopClock())
    assert run.summary.e2e is not None
    assert run.summary.response_e2e is not None
    assert (run.summary.e2e.min, run.summary.e2e.max) == pytest.approx((0.1, 0.1), abs=TOLERANCE_S)
    # One after the other: each is done when all before it are, and so much later than was intended.
    done_s = accumulate(latency.e2e_s(record) for record in run.records)
    waited = [end_s - n / 20 for n, end_s in enumerate(done_s)]
    assert sum(waited) / 20 == pytest.approx(0.575, abs=20 * TOLERANCE_S)
    assert run.summary.response_e2e.mean == pytest.approx(0.575, abs=20 * TOLERANCE_S)
    ended = [record.t_last_s - n / 20 for n, record in enumerate(run.records)]
    assert run.summary.response_e2e.mean == pytest.approx(sum(ended) / 20, abs=TOLERANCE_S)
