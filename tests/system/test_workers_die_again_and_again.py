"""Real workers, one killed every few seconds: no client sees an error, and no answer is another.

RADIXGATE_KILLS says how many (each KILL_EVERY_S); by hand, 20 take five minutes.
"""

import asyncio
import os
import signal
from typing import Any

import pytest

from live_fleet import LiveFleet, LiveWorker, Streamed, live_fleet

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("RADIXGATE_KILLS", "2"))
KILL_EVERY_S = 15.0 if "RADIXGATE_KILLS" in os.environ else 5.0
CLIENTS = 6
WORKER = ("--max-total-tokens", "32768")


def body(number: int) -> dict[str, Any]:
    """One of twelve requests, half of them sampled; each is asked again and again."""
    number %= 12
    sampled: dict[str, object] = (
        {"temperature": 0.9, "seed": number} if number % 2 else {"temperature": 0}
    )
    return {
        "model": "toy",
        "messages": [{"role": "user", "content": f"story {number}"}],
        "max_tokens": 500 + 200 * (number % 3),
        "ignore_eos": True,
        "stream": True,
        **sampled,
    }


def text_of(answer: Streamed) -> str:
    assert answer.status == 200, answer
    assert answer.done
    assert not any("error" in event for event in answer.events), answer.events[-1]
    finishes = [
        choice["finish_reason"]
        for event in answer.events
        for choice in event["choices"]
        if choice["finish_reason"]
    ]
    assert finishes == ["length"]
    return answer.chat_text


async def restart(fleet: LiveFleet, victim: LiveWorker) -> None:
    """Kill it and have another process at its address."""
    victim.child.send(signal.SIGKILL)
    await victim.child.wait()
    fleet.workers.remove(victim)
    ports = victim.http.rsplit(":", 1)[1], victim.grpc.rsplit(":", 1)[1]
    await fleet.add_worker("--port", ports[0], "--grpc-port", ports[1], *WORKER)


@pytest.mark.timeout(300 + 3 * KILLS * KILL_EVERY_S)
async def test_no_client_sees_an_error_and_every_answer_is_the_undisturbed_one() -> None:
    async with live_fleet(2, worker_flags=WORKER) as fleet:
        asked = [fleet.stream("/v1/chat/completions", body(number)) for number in range(12)]
        undisturbed = [text_of(answer) for answer in await asyncio.gather(*asked)]
        over = asyncio.Event()
        answered = 0

        async def client(number: int) -> None:
            nonlocal answered
            while not over.is_set():
                answer = await fleet.stream("/v1/chat/completions", body(number))
                assert text_of(answer) == undisturbed[number % 12]
                answered += 1
                number += CLIENTS

        async with asyncio.TaskGroup() as clients:
            for number in range(CLIENTS):
                clients.create_task(client(number))
            for _ in range(KILLS):
                await asyncio.sleep(KILL_EVERY_S - 2)
                await restart(fleet, fleet.workers[0])
                await fleet.ready_workers(2)
            await asyncio.sleep(1)
            over.set()
        rows = await fleet.ready_workers(2)
        assert all(row["in_flight"] == 0 for row in rows)
        metrics = (await fleet.get("/metrics"))[2]
        counted = {
            line.split()[0]: float(line.split()[1])
            for line in metrics.splitlines()
            if line.startswith(("radixgate_requests_total", "radixgate_continuations_total"))
        }
        assert counted['radixgate_requests_total{outcome="ok"}'] == answered + 12
        assert sum(counted.values()) == answered + 12 + counted["radixgate_continuations_total"]
        print(f"{answered} answers, {counted['radixgate_continuations_total']:g} went on elsewhere")
        assert counted["radixgate_continuations_total"] > 0
