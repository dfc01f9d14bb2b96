"""A gateway of two processes over scripted workers answers as one process does."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from gateway_processes import processes
from raw_client import RawClient, ask, request
from scripted_worker import Await, Hang, ScriptedWorker, events, json_answer, sse_end, sse_head
from small_gateway import CHAT, chat_body
from until import PATIENCE_S, until

pytestmark = pytest.mark.slow


def holds(folder: Path) -> int:
    return len(list(folder.iterdir()))


def gone(pid: int) -> bool:
    """It has ended, whether or not somebody has taken notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


async def test_every_request_is_counted_once_and_every_admin_call_answers() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        processes("--worker-urls", one.url, two.url) as served,
    ):
        await served.ready(2)
        answers = await asyncio.gather(*(served.chat(f"question {n}") for n in range(40)))
        assert [answer.status for answer in answers] == [200] * 40
        assert len(one.requests) + len(two.requests) >= 40
        assert await served.metric('radixgate_requests_total{outcome="ok"}') == 40
        assert await served.metric("radixgate_request_duration_seconds_count") == 40
        assert await served.metric("radixgate_in_flight") == 0
        rows = (await served.get("/workers")).json["workers"]
        assert sorted(row["id"] for row in rows) == sorted((one.url[7:], two.url[7:]))
        assert (await served.get("/v1/models")).json["data"][0]["id"] == "toy"


async def test_what_an_admin_orders_holds_at_every_process_when_it_is_answered() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        processes("--worker-urls", one.url) as served,
    ):
        await served.ready(1)
        added = await served.post("/workers", {"url": two.url})
        assert added.status == 200
        await served.ready(2)
        paused = await ask(
            served.port,
            request(f"/workers/{one.url[7:]}", {"state": "paused"}, method="PUT"),
        )
        assert paused.json["state"] == "paused"
        before = len(one.requests)
        answers = await asyncio.gather(*(served.chat(f"paused {n}") for n in range(30)))
        assert [answer.status for answer in answers] == [200] * 30
        assert len(one.requests) == before
        removed = await ask(served.port, request(f"/workers/{one.url[7:]}", method="DELETE"))
        assert removed.json["state"] == "removed"
        assert len((await served.get("/workers")).json["workers"]) == 1


async def test_a_worker_that_comes_back_as_another_is_taken_up_by_every_process() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        processes("--worker-urls", one.url, two.url) as served,
    ):
        await served.ready(2)
        await one.stop()
        await served.ready(1)
        # As SGLang finds other memory free each time it starts.
        one.admin["/get_server_info"] = lambda request: json_answer({"max_total_num_tokens": 4096})
        await one.start()
        await served.ready(2)
        await ask(served.port, request(f"/workers/{two.url[7:]}", method="DELETE"))
        answers = await asyncio.gather(*(served.chat(f"back {n}") for n in range(30)))
        assert [answer.status for answer in answers] == [200] * 30


async def test_after_a_flush_no_process_believes_anything_of_a_worker_without_reports() -> None:
    async with ScriptedWorker() as worker, processes("--worker-urls", worker.url) as served:
        await served.ready(1)
        worker.admin["/flush_cache"] = lambda request: json_answer({"ok": True})
        text = "a long beginning " * 100
        for _ in range(8):
            await served.chat(text)
        predicted = await served.metric("radixgate_predicted_cached_tokens_total")
        assert predicted > 0
        for _ in range(4):
            assert (await served.post("/flush_cache", b"")).status == 200
            await served.chat(text)
            assert (await served.get("/flush_cache")).status == 200
            await served.chat(text)
        assert await served.metric("radixgate_predicted_cached_tokens_total") == predicted
        await served.post("/flush_cache", b"")
        rows = (await served.get("/workers")).json["workers"]
        assert [row["blocks_mirrored"] for row in rows] == [0]


async def test_a_process_that_is_killed_is_replaced_and_its_counts_stay() -> None:
    async with ScriptedWorker() as worker, processes("--worker-urls", worker.url) as served:
        await served.ready(1)
        assert {(await served.chat(f"q{n}")).status for n in range(20)} == {200}
        assert await served.metric('radixgate_requests_total{outcome="ok"}') == 20
        before = served.children()
        assert len(before) == 2
        victim = before[0]
        await asyncio.create_subprocess_exec("kill", "-9", str(victim))
        async with asyncio.timeout(PATIENCE_S):
            while len(set(served.children()) - set(before)) != 1:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        answers = 0
        async with asyncio.timeout(PATIENCE_S):
            while answers < 30:
                try:
                    answers += (await served.chat(f"after {answers}")).status == 200
                except ConnectionError:
                    continue  # it had been accepted by the one that was killed
        assert await served.metric('radixgate_requests_total{outcome="ok"}') >= 50


async def test_sigterm_lets_answers_end_and_a_second_one_does_not_wait() -> None:
    """The second ends it within a second more than twice what idle ones take on this machine."""
    async with processes() as served:
        began = time.perf_counter()
        served.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            assert await served.process.wait() == 0
        yardstick_s = time.perf_counter() - began
    async with ScriptedWorker() as worker, processes("--worker-urls", worker.url) as served:
        await served.ready(1)
        texts = [str(at) for at in range(10)]
        worker.script = lambda request: [*sse_head(), *events(*texts, gap_s=0.1), *sse_end()]
        children = served.children()
        async with RawClient(served.port) as client:
            client.send(request(CHAT, chat_body(stream=True)))
            await until(lambda: len(worker.requests) == 1)
            served.process.send_signal(signal.SIGTERM)
            assert len((await client.answer()).events) == 12
        async with asyncio.timeout(PATIENCE_S):
            assert await served.process.wait() == 0
        assert all(map(gone, children))
    flags = ("--shutdown-grace-period-secs", "600")
    async with ScriptedWorker() as worker, processes("--worker-urls", worker.url, *flags) as served:
        await served.ready(1)
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        children = served.children()
        async with RawClient(served.port) as idle, RawClient(served.port) as client:
            client.send(request(CHAT, chat_body(stream=True)))
            await until(lambda: len(worker.requests) == 1)
            served.process.send_signal(signal.SIGTERM)
            assert await idle.ended()  # it has begun to drain
            assert served.process.returncode is None
            began = time.perf_counter()
            served.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                assert await served.process.wait() == 0
            assert time.perf_counter() - began < 2 * yardstick_s + 1.0
        assert all(map(gone, children))


async def test_every_process_takes_requests_for_a_while_after_sigterm() -> None:
    flags = ("--shutdown-accept-secs", "6")
    async with ScriptedWorker() as worker, processes("--worker-urls", worker.url, *flags) as served:
        await served.ready(1)
        served.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            told: set[tuple[int, str]] = set()
            while told != {(503, "draining")}:
                # Over as many connections as reach both of them.
                answers = [await served.get("/readiness") for _ in range(20)]
                told = {(one.status, one.json["status"]) for one in answers}
        chats = [await served.chat(f"late {n}") for n in range(20)]
        assert {(one.status, one.header("connection")) for one in chats} == {(200, "close")}
        async with asyncio.timeout(PATIENCE_S):
            assert await served.process.wait() == 0


@pytest.mark.parametrize("accept_s", ["0", "1"])
async def test_a_process_that_is_being_started_at_sigterm_answers_nothing(accept_s: str) -> None:
    flags = ("--shutdown-grace-period-secs", "600", "--shutdown-accept-secs", accept_s)
    async with ScriptedWorker() as worker, processes("--worker-urls", worker.url, *flags) as served:
        await served.ready(1)
        before = served.children()
        os.kill(before[0], signal.SIGKILL)
        await until(lambda: bool(set(served.children()) - set(before)))
        (reborn,) = set(served.children()) - set(before)
        served.process.send_signal(signal.SIGTERM)
        await until(lambda: gone(before[1]))
        async with asyncio.timeout(PATIENCE_S):
            assert await served.process.wait() == 0
        assert gone(reborn)
        assert worker.requests == []


async def test_a_signal_before_it_is_ready_ends_it(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "radixgate.cli", "gateway", "--port", "0", "--processes", "2"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    # Its folder is there as soon as it has begun to start its children.
    await until(lambda: holds(tmp_path) > 0)
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_S):
        said, _ = await process.communicate()
    assert process.returncode == 0
    assert said == b"" or b"ready" in said
    assert holds(tmp_path) == 0


async def test_children_do_not_outlive_a_parent_that_is_killed() -> None:
    async with processes() as served:
        children = served.children()
        served.process.kill()
        await served.process.wait()
        await until(lambda: all(map(gone, children)))


async def test_an_abort_reaches_the_process_that_runs_the_request() -> None:
    async with ScriptedWorker() as worker, processes("--worker-urls", worker.url) as served:
        await served.ready(1)
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        async with RawClient(served.port) as client:
            client.send(request("/generate", {"text": "x", "rid": "mine", "stream": True}))
            await until(lambda: len(worker.requests) == 1)
            answer = await served.post("/abort_request", {"rid": "mine"})
            assert list(answer.json["workers"]) == [worker.url[7:]]
        aborts = [one for one in worker.admin_requests if one.path == "/abort_request"]
        assert len(aborts) == 1


async def test_a_limit_holds_for_all_processes_together() -> None:
    async with ScriptedWorker() as worker:
        flags = ("--max-concurrent-requests", "4", "--queue-size", "0")
        async with processes("--worker-urls", worker.url, *flags) as served:
            await served.ready(1)
            word = asyncio.Event()
            worker.script = lambda request: [*sse_head(), *events("a"), Await(word), *sse_end()]
            bodies = [chat_body(f"q{n}", stream=True) for n in range(24)]
            asking = [asyncio.create_task(served.post(CHAT, body)) for body in bodies]
            await until(lambda: sum(one.done() for one in asking) >= 20)
            word.set()
            statuses = [answer.status for answer in await asyncio.gather(*asking)]
            assert set(statuses) == {200, 429}
            assert statuses.count(200) <= 4


async def test_a_limit_that_cannot_be_divided_is_refused() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "radixgate.cli", "gateway", "--port", "0"),
        *("--processes", "3", "--max-concurrent-requests", "2"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert "max_concurrent_requests is 2, and processes is 3" in said.decode()
