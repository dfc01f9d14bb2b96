"""Whatever comes in: no crash, no hang, nothing smuggled, and nothing left behind.

RADIXGATE_FUZZ_SECS and RADIXGATE_FUZZ_SEED run it longer and otherwise. A failure names the seed
and the connection: `connection(random.Random(f"{seed}/{number}"), number)` makes it again.
"""

import asyncio
import os
import random
import re
import socket
import struct
import time
from collections import Counter
from typing import Any

import pytest

from answer_stream import AnswerStream
from radixgate.gateway.asking.foreign_request import HOT_PATHS
from radixgate.gateway.heads.request_reader import MAX_PIPELINED_BYTES
from request_grammar import Sent, connection
from scripted_worker import (
    Recorded,
    ScriptedWorker,
    Step,
    events,
    json_answer,
    sse_end,
    sse_head,
)
from small_gateway import SmallGateway, small_gateway
from strict_reader import Reading, Rest, read_strictly
from until import PATIENCE_S, until

SECONDS = float(os.environ.get("RADIXGATE_FUZZ_SECS", "30"))
SEED = int(os.environ.get("RADIXGATE_FUZZ_SEED", "1"))
MOST_BODY_BYTES = 100_000
AT_ONCE = 24
QUIET_S = 0.03  # of a connection with something odd: whoever still waits then, waits for us
# What this gateway may say to such requests; a 5xx would be a fault of ours.
STATUSES = frozenset((200, 400, 401, 404, 405, 408, 413, 415))
# Of a request's body and of its answer, whole or streamed; a damaged one is not looked for.
_MARK = re.compile(rb'"(?:mark|content)": "(\d+-\d+)"')


def script(request: Recorded) -> list[Step]:
    # A damaged body may be no JSON any more, and is for the worker to judge all the same.
    found = _MARK.search(request.body)
    mark = "" if found is None else found[1].decode()
    if b'"stream": true' in request.body:
        return [*sse_head(), *events(mark), *sse_end((5, 2))]
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    return json_answer({"mark": mark, "usage": usage})


class Fuzzer:
    """Sends connections by number, and keeps what they were allowed to mean."""

    def __init__(self, gateway: SmallGateway) -> None:
        self.gateway = gateway
        self.connections = 0
        self.meant: Counter[bytes] = Counter()
        self.statuses: Counter[int] = Counter()
        self._next = 0

    async def run(self, until_time: float) -> None:
        async def client() -> None:
            while time.monotonic() < until_time:
                number, self._next = self._next, self._next + 1
                sent = connection(random.Random(f"{SEED}/{number}"), number)
                try:
                    async with asyncio.timeout(60):
                        await self._one(sent)
                except Exception as error:
                    error.add_note(f"seed {SEED}, connection {number}: {sent.raw[:3_000]!r}")
                    raise

        async with asyncio.TaskGroup() as clients:
            for _ in range(AT_ONCE):
                clients.create_task(client())

    async def _one(self, sent: Sent) -> None:
        self.connections += 1
        reading = read_strictly(sent.raw, HOT_PATHS)
        self.meant.update(reading.bodies)
        if sent.sound >= 0:
            assert (len(reading.bodies), reading.rest) == (sent.sound, Rest.NOTHING)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway.port)
        seen = AnswerStream()
        try:
            for piece in sent.pieces:
                if writer.transport.is_closing():
                    break  # it was refused before all had been sent
                writer.write(piece)
                await asyncio.sleep(0)
            if sent.end == "half-close" and not writer.transport.is_closing():
                writer.write_eof()
            if sent.end in ("half-close", "wait"):
                await self._read(reader, seen, sent)
        except ConnectionError:
            pass
        finally:
            raw = writer.get_extra_info("socket")  # None: it is closed
            if sent.end == "reset" and raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._judge(seen, sent, reading)

    async def _read(self, reader: asyncio.StreamReader, seen: AnswerStream, sent: Sent) -> None:
        """To the end of the connection, or until nothing more is due."""
        patience_s = PATIENCE_S if sent.sound >= 0 else QUIET_S
        while sent.sound < 0 or seen.whole < sent.sound:
            try:
                async with asyncio.timeout(patience_s):
                    data = await reader.read(65_536)
            except TimeoutError:
                assert sent.sound < 0, f"{seen.whole} of {sent.sound} answers, and then silence"
                return
            if not data:
                return
            seen.feed(data)

    def _judge(self, seen: AnswerStream, sent: Sent, reading: Reading) -> None:
        bodies = reading.bodies
        whole = [one for one in seen.answers if one.whole]
        for one in whole:
            assert one.status in STATUSES, one
            self.statuses[one.status] += 1
            names = [name for name, _ in one.headers]
            # What follows a request to the application is the application's to refuse.
            assert names.count(b"x-request-id") == 1 or reading.rest is Rest.HANDED_OVER
            assert not {b"content-length", b"transfer-encoding"} <= set(names)
        # Answers come in the order of the requests, each to its own.
        marks = [found[1].decode() for body in bodies if (found := _MARK.search(body))]
        answered = [mark for one in whole if one.status == 200 and (mark := _mark_of(one.body))]
        places = iter(marks)
        assert all(mark in places for mark in answered), (marks, answered)
        if sent.sound >= 0 and sent.end == "wait":
            assert answered == marks[: len(answered)]
            # What comes in one piece behind a chunked body is lost, and the client told so; what
            # is too much to be kept is lost while an answer is under way.
            assert (
                len(answered) == sent.sound
                or whole[-1].closes
                or len(sent.raw) > MAX_PIPELINED_BYTES
            )
            fitting = [body for body in bodies if len(body) <= MOST_BODY_BYTES]
            assert len(whole) > 0 or not fitting


def _mark_of(body: bytes) -> str | None:
    found = _MARK.search(body)
    return None if found is None else found[1].decode()


def check_requests(workers: list[ScriptedWorker], meant: Counter[bytes]) -> int:
    """The workers have seen nothing but whole requests that were meant, each once."""
    seen: Counter[bytes] = Counter()
    for worker in workers:
        for request in worker.requests:
            seen[request.body] += 1
            names = [name for name, _ in request.headers]
            assert names.count("content-length") == names.count("host") == 1, request
            assert "transfer-encoding" not in names, request
            assert request.header("content-length") == str(len(request.body))
            assert not any(set(name) & set(' \t\x00:"') for name in names), request
            assert (request.method, request.path.encode() in HOT_PATHS) == ("POST", True)
        for one in worker.connections:
            assert not one._unread, "bytes that belong to no request"
    smuggled = seen - meant
    assert not smuggled, f"seed {SEED}: {list(smuggled)[:3]}"
    return seen.total()


@pytest.mark.slow
@pytest.mark.timeout(max(600.0, 2 * SECONDS + 60))
async def test_nothing_gets_through_that_was_not_meant_and_nothing_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("ERROR")
    faults: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: faults.append(context))
    workers = [await ScriptedWorker(script=script).start() for _ in range(2)]
    async with small_gateway(workers, max_payload_size=MOST_BODY_BYTES) as gateway:
        front = gateway.gateway.door.front  # type: ignore[union-attr]
        tasks = len(asyncio.all_tasks())
        fuzzer, until_time = Fuzzer(gateway), time.monotonic() + SECONDS
        await fuzzer.run(until_time)
        metrics = gateway.gateway.metrics
        await until(lambda: not front.connections and metrics.in_flight == 0)
        assert gateway.in_flight() == len(gateway.gateway.headquarters.path.held) == 0
        gateway.gateway.choice.check()
        # The application waits for the rest of a body for up to 10 s.
        await until(lambda: len(asyncio.all_tasks()) <= tasks, within_s=60)
        assert check_requests(workers, fuzzer.meant) > 0
        assert (await gateway.chat()).status == 200, "it serves on"
    for worker in workers:
        await worker.stop()
    assert not faults, faults[:3]
    assert not [record.getMessage() for record in caplog.records]
    print(f"{fuzzer.connections} connections, {dict(fuzzer.statuses)}")
    assert fuzzer.statuses[200] > 0
    assert fuzzer.statuses[400] > 0
