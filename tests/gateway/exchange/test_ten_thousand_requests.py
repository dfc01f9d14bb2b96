"""10,000 requests while a worker dies and returns: one answer each, and it all adds up."""

import asyncio
import json
from collections import Counter

import pytest

from radixgate.gateway.observe.metrics import FinalOutcome
from raw_client import Answer, RawClient, request
from scripted_worker import (
    Recorded,
    ScriptedWorker,
    Sleep,
    Step,
    chat_answer,
    events,
    sse_end,
    sse_head,
)
from small_gateway import CHAT, chat_body, small_gateway
from until import until

REQUESTS = 10_000
CLIENTS = 50
# In attempts at any worker, so that a slow machine sees no more deaths than a quick one.
DIES_EVERY = 1_250


def echo(request: Recorded) -> list[Step]:
    text = str(request.json["messages"][0]["content"])
    if not request.json.get("stream"):
        return chat_answer(text)
    # Cut in three, with time to die in between.
    parts = text[:3], text[3:5], text[5:]
    return [*sse_head(), *events(parts[0]), Sleep(0.01), *events(*parts[1:]), *sse_end((5, 3))]


def judged(answer: Answer, text: str) -> str:
    """How the client takes it; anything but one right answer or one clear error fails."""
    if answer.header("content-type") != "text/event-stream":
        assert not answer.cut
        if answer.status == 200:
            assert answer.json["choices"][0]["message"]["content"] == text
            return "right"
        assert answer.status in (502, 503), answer
        assert answer.json["error"]["message"]
        return "rejected" if answer.status == 503 else "upstream_error"
    assert (answer.status, answer.events[-1]) == (200, b"[DONE]")
    told = [json.loads(event) for event in answer.events[:-1]]
    errors = [event for event in told if "error" in event]
    choices = [choice for event in told for choice in event.get("choices", ())]
    said = "".join(choice["delta"]["content"] for choice in choices)
    finishes = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    if not errors:
        assert (said, finishes) == (text, ["stop"])
        return "right"
    assert text.startswith(said)
    assert (len(errors), finishes) == (1, [])
    return "upstream_error"


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_each_has_one_right_answer_or_one_clear_error_and_the_books_add_up() -> None:
    workers = [await ScriptedWorker(script=echo).start() for _ in range(3)]
    async with small_gateway(workers, retry_max_retries=3) as gateway:
        numbers = iter(range(REQUESTS))
        verdicts: Counter[str] = Counter()
        deaths = 0

        async def client() -> None:
            connection = await RawClient(gateway.port).__aenter__()
            for number in numbers:
                text = f"say {number:05d}"
                body = chat_body(text, stream=number % 2 == 0)
                answer = await connection.ask(request(CHAT, body))
                verdicts[judged(answer, text)] += 1
            connection.close()

        async def die_and_return() -> None:
            nonlocal deaths
            while True:
                await attempted(DIES_EVERY // 2)
                await workers[0].stop()
                deaths += 1
                await attempted(DIES_EVERY // 2)
                await workers[0].start()

        async def attempted(more: int) -> None:
            seen = metrics.attempts
            while metrics.attempts < seen + more:  # noqa: ASYNC110  # to the last request
                await asyncio.sleep(0.001)

        metrics = gateway.gateway.metrics
        killer = asyncio.create_task(die_and_return())
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        killer.cancel()

        await until(lambda: metrics.in_flight == 0)
        assert gateway.in_flight() == len(gateway.gateway.headquarters.path.held) == 0
        gateway.gateway.choice.check()
        assert deaths >= 7
        counted = metrics.requests
        assert verdicts.total() == sum(counted.values()) == REQUESTS
        assert counted[FinalOutcome.OK] == verdicts["right"] > REQUESTS * 0.98
        assert counted[FinalOutcome.UPSTREAM_ERROR] == verdicts["upstream_error"]
        assert counted[FinalOutcome.REJECTED] == verdicts["rejected"]
        assert metrics.attempts == REQUESTS + metrics.retries
        seen = sum(len(worker.requests) for worker in workers)
        assert REQUESTS <= seen <= metrics.attempts
        print(f"{deaths} deaths, {metrics.retries} retries, {dict(verdicts)}")
    for worker in workers:
        await worker.stop()
