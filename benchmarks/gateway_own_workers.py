"""What the gateway adds to a request for a worker of ours: CPU, time to the first token.

Two scripted gRPC workers answer at once and then send a token every 10 ms; a gateway process with a
key, limits and metrics stands before them. Chats of about 2k tokens, each as a new conversation and
as the fifth turn of one. CPU is that of the gateway's process, user and system, all its threads.
Beside an output item stands what it costs a bare loop over the same workers (bare_item_loop.py),
with the gateway's own reader of HTTP/2 and with grpc.aio: the reader and the kernel. The same loop
is the relay that the gateway's time to the first token is held against: it reads the client's JSON,
sends a prompt of as many tokens and writes the first event, so that the client's share, the
worker's and the kernel's are in both. On a machine that is full two steps are read at once, and two
tokens go in one write; `--gap-ms 40` leaves it room. Everything is on 127.0.0.1.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
import uvloop

from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.weights.toy import toy_tokenizer_bundle

HERE = Path(__file__).parent
WORKER_PORTS, GATEWAY_PORT, KEY = (19301, 19302), 19300, "bench-key"
BARE_PORTS = {"http2": 19303, "grpc.aio": 19304}  # by reader
RELAY, ALONE = "by a bare relay", "worker alone"
TURN_TOKENS, TURNS = 400, 5
MORE_TOKENS = 200
TICK_MS = 1_000 / os.sysconf("SC_CLK_TCK")
Message = dict[str, str]


def started(*words: str) -> "subprocess.Popen[str]":
    """A process whose first line says that it is ready."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@contextmanager
def fleet(policy: str, gap_ms: float) -> Iterator[tuple[int, dict[str, int]]]:
    """Workers, and a gateway and bare loops over them: its process id, and theirs by reader."""
    python, script = sys.executable, str(HERE / "scripted_grpc_worker.py")
    children = [
        started(python, script, "--port", str(port), "--gap-ms", str(gap_ms))
        for port in WORKER_PORTS
    ]
    urls = [f"grpc://127.0.0.1:{port}" for port in WORKER_PORTS]
    limits = ["--max-concurrent-requests", "10000", "--tenant-requests-per-minute", "1e9"]
    words = ["gateway", "--port", str(GATEWAY_PORT), "--policy", policy, "--api-key", KEY, *limits]
    try:
        gateway = started(python, "-m", "radixgate.cli", *words, "--worker-urls", *urls)
        children.insert(0, gateway)
        addresses = [f"127.0.0.1:{port}" for port in WORKER_PORTS]
        bare, pids = str(HERE / "bare_item_loop.py"), {}
        for reader, port in BARE_PORTS.items():
            flags = ["--port", str(port), "--reader", reader, "--workers", *addresses]
            children.insert(0, started(python, bare, *flags))
            pids[reader] = children[0].pid
        yield gateway.pid, pids
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(10)


def cpu_ms(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_MS


class Client:
    """One connection; a request, then its whole answer."""

    async def open(self, port: int = GATEWAY_PORT) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(self, messages: Sequence[Message], tokens: int, *, stream: bool) -> float:
        """Seconds to the first byte of the answer's body. Raises if it is no whole answer."""
        body = json.dumps(
            {"model": "scripted", "messages": messages, "max_tokens": tokens, "stream": stream}
        ).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\n" % (
            KEY.encode()
        )
        began = time.perf_counter()
        self._writer.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        if not stream:
            length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await self._reader.readexactly(length)
            return time.perf_counter() - began
        first_s, events = 0.0, 0
        while (size := int(await self._reader.readline(), 16)) > 0:
            piece = await self._reader.readexactly(size + 2)
            first_s = first_s or time.perf_counter() - began
            events += piece.count(b"data: ")
        await self._reader.readline()
        assert events >= tokens, f"{events} events for {tokens} tokens"
        return first_s

    def close(self) -> None:
        self._writer.close()


def turn(rng: random.Random) -> str:
    """A message of about TURN_TOKENS tokens of the toy tokenizer."""
    return " ".join(str(rng.randrange(1_000, 10_000)) for _ in range(_WORDS_A_TURN))


def chat(rng: random.Random) -> list[Message]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": turn(rng)} for n in range(TURNS)]


def _words_a_turn() -> int:
    tokens = len(PromptEncoder(toy_tokenizer_bundle()).encode_text("1234 5678 " * 50))
    return TURN_TOKENS * 100 // tokens


_WORDS_A_TURN = _words_a_turn()


async def many(
    chats: Sequence[Sequence[Message]],
    tokens: int,
    *,
    stream: bool,
    pid: int,
    at_once: int = 8,
    port: int = GATEWAY_PORT,
) -> float:
    """CPU milliseconds of the gateway, or of what listens at `port`, a request."""
    waiting = list(chats)

    async def work() -> None:
        client = Client()
        await client.open(port)
        while waiting:
            await client.ask(waiting.pop(), tokens, stream=stream)
        client.close()

    before = cpu_ms(pid)
    await asyncio.gather(*(work() for _ in range(at_once)))
    return (cpu_ms(pid) - before) / len(chats)


async def an_item_us(at_once: int, pid: int, port: int) -> float:
    """CPU microseconds an output item, from the difference of long and short answers."""
    chats: list[list[Message]] = [[{"role": "user", "content": f"hi {n}"}] for n in range(at_once)]
    few = await many(chats, 2, stream=True, pid=pid, at_once=at_once, port=port)
    lots = await many(chats, 2 + MORE_TOKENS, stream=True, pid=pid, at_once=at_once, port=port)
    return (lots - few) / MORE_TOKENS * 1e3


class Direct:
    """A worker without a gateway: a request, then its whole answer."""

    async def __aenter__(self) -> "Direct":
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{WORKER_PORTS[0]}")
        self._call = rpc.WorkerStub(self._channel).Attach()  # type: ignore[no-untyped-call]
        self._asked = 0
        return self

    async def __aexit__(self, *_: object) -> None:
        self._call.cancel()
        await self._channel.close()

    async def ask(self, prompt_tokens: int, tokens: int) -> float:
        """Seconds from Submit to the first item."""
        self._asked += 1
        ids = array("I", [7] * prompt_tokens).tobytes()
        submit = pb.Submit(handle=self._asked, rid=str(self._asked), input_ids=ids, credit=8)
        submit.sampling.max_tokens = tokens
        began = time.perf_counter()
        await self._call.write(pb.Command(submit=submit))
        await self._call.read()
        first_s = time.perf_counter() - began
        for _ in range(tokens - 1):
            await self._call.read()
        return first_s


async def first_token_ms(rng: random.Random, count: int) -> dict[str, float]:
    """Medians by who was asked what, in turns: who is asked once in a while finds the processor's
    caches full of others' work, and the processor asleep."""
    waits: dict[str, list[float]] = {}
    gateway, relay = Client(), Client()
    await gateway.open()
    await relay.open(BARE_PORTS["http2"])
    async with Direct() as worker:
        for number in range(count):
            cold = chat(rng)
            fifth = [*cold[:-1], {"role": "user", "content": turn(rng)}]
            short = [{"role": "user", "content": f"hello {number}"}]
            for name, client, messages in (
                ("cold", gateway, cold),
                ("fifth turn", gateway, fifth),
                ("short", gateway, short),
                (RELAY, relay, cold),
            ):
                waits.setdefault(name, []).append(await client.ask(messages, 2, stream=True))
            waits.setdefault(ALONE, []).append(await worker.ask(TURN_TOKENS * TURNS, 2))
    gateway.close()
    relay.close()
    return {name: statistics.median(some) * 1e3 for name, some in waits.items()}


def tokenized(rng: random.Random) -> tuple[int, int, int]:
    """Characters handed to the tokenizer: for four turns, then for the fifth; and that turn's."""
    encoder = PromptEncoder(toy_tokenizer_bundle())
    inner, seen = encoder.tokenizer.encode_batch, [0]

    def counted(texts: list[str]) -> object:
        seen[0] += sum(map(len, texts))
        return inner(texts)

    encoder.cache._encode_batch = counted  # type: ignore[assignment]
    messages = chat(rng)
    encoder.encode_messages(messages[:-1], tools=None, template_kwargs=None)
    first, seen[0] = seen[0], 0
    encoder.encode_messages(messages, tools=None, template_kwargs=None)
    return first, seen[0], len(messages[-1]["content"])


async def measure(count: int, policy: str, gap_ms: float) -> None:
    rng = random.Random(1)
    with fleet(policy, gap_ms) as (pid, bare_pids):
        await wait_until_ready()
        await many([chat(rng) for _ in range(16)], 1, stream=False, pid=pid)
        cold = [chat(rng) for _ in range(count)]
        fifth = [[*messages[:-1], {"role": "user", "content": turn(rng)}] for messages in cold]
        short: list[list[Message]] = [
            [{"role": "user", "content": f"hi {n}"}] for n in range(count)
        ]
        for name, chats in (("cold", cold), ("fifth turn", fifth), ("short", short)):
            cost = await many(chats, 1, stream=False, pid=pid)
            print(f"CPU a request, {name:<17} {cost:7.3f} ms")
        for at_once in (8, 64, 256):
            cost = await an_item_us(at_once, pid, GATEWAY_PORT)
            print(f"CPU an output item, {at_once:>3} streams {cost:8.1f} us")
            for reader, bare_pid in bare_pids.items():
                least = await an_item_us(at_once, bare_pid, BARE_PORTS[reader])
                print(f"  by a bare loop over {reader:<9} {least:8.1f} us")
        first = await first_token_ms(rng, 100)
        print(f"TTFT, worker alone               {first.pop(ALONE):7.2f} ms")
        least = first.pop(RELAY)
        print(f"TTFT, by a bare relay            {least:7.2f} ms")
        for name, wait in first.items():
            print(f"TTFT added, {name:<20} {wait - least:7.2f} ms, beyond the relay")
    before, after, own = tokenized(rng)
    print(
        f"characters tokenized: turns 1 to 4 {before}; then turn 5 {after}, of which its own {own}"
    )


async def wait_until_ready() -> None:
    client = Client()
    await client.open()
    for _ in range(100):
        try:
            await client.ask([{"role": "user", "content": "hi"}], 1, stream=False)
            return
        except AssertionError:
            client.close()
            await asyncio.sleep(0.1)
            await client.open()
    raise SystemExit("the gateway did not become ready")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--policy", default="kv_cost")
    parser.add_argument("--gap-ms", type=float, default=10.0, help="between a worker's tokens")
    options = parser.parse_args()
    uvloop.run(measure(options.requests, options.policy, options.gap_ms))


if __name__ == "__main__":
    main()
