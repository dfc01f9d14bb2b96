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
import random
import statistics
import time
from array import array
from collections.abc import Mapping, Sequence

import grpc
import uvloop
from scripted_fleet import Client, Listener, Message, cpu_ms, fleet, wait_until_ready

from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.weights.toy import toy_tokenizer_bundle

RELAY, ALONE = "by a bare relay", "worker alone"
TURN_TOKENS, TURNS = 400, 5
MORE_TOKENS = 200


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
    to: Listener,
    *,
    stream: bool,
    at_once: int = 8,
) -> float:
    """CPU milliseconds of the gateway, or of whom it is asked, a request."""
    waiting = list(chats)

    async def work() -> None:
        client = Client()
        await client.open(to.port)
        while waiting:
            await client.ask(waiting.pop(), tokens, stream=stream)
        client.close()

    before = cpu_ms(to.pid)
    await asyncio.gather(*(work() for _ in range(at_once)))
    return (cpu_ms(to.pid) - before) / len(chats)


async def an_item_us(at_once: int, to: Listener) -> float:
    """CPU microseconds an output item, from the difference of long and short answers."""
    chats: list[list[Message]] = [[{"role": "user", "content": f"hi {n}"}] for n in range(at_once)]
    few = await many(chats, 2, to, stream=True, at_once=at_once)
    lots = await many(chats, 2 + MORE_TOKENS, to, stream=True, at_once=at_once)
    return (lots - few) / MORE_TOKENS * 1e3


class Direct:
    """A worker without a gateway: a request, then its whole answer."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> "Direct":
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{self._port}")
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


async def first_token_ms(
    rng: random.Random, count: int, gateway_port: int, relay_port: int, worker_port: int
) -> dict[str, float]:
    """Medians by who was asked what, in turns: who is asked once in a while finds the processor's
    caches full of others' work, and the processor asleep."""
    waits: dict[str, list[float]] = {}
    gateway, relay = Client(), Client()
    await gateway.open(gateway_port)
    await relay.open(relay_port)
    async with Direct(worker_port) as worker:
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


async def requests(rng: random.Random, count: int, gateway: Listener) -> None:
    await many([chat(rng) for _ in range(16)], 1, gateway, stream=False)
    cold = [chat(rng) for _ in range(count)]
    fifth = [[*messages[:-1], {"role": "user", "content": turn(rng)}] for messages in cold]
    short: list[list[Message]] = [[{"role": "user", "content": f"hi {n}"}] for n in range(count)]
    for name, chats in (("cold", cold), ("fifth turn", fifth), ("short", short)):
        cost = await many(chats, 1, gateway, stream=False)
        print(f"CPU a request, {name:<17} {cost:7.3f} ms")


async def items(rounds: int, gateway: Listener, bare: Mapping[str, Listener]) -> None:
    """Medians, and least to most, of rounds in which all take turns."""
    for at_once in (8, 64, 256):
        contestants = {f"CPU an output item, {at_once:>3} streams": gateway}
        for reader, loop in bare.items():
            contestants[f"  by a bare loop over {reader}"] = loop
        costs: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(rounds):
            for name, listener in contestants.items():
                costs[name].append(await an_item_us(at_once, listener))
        for name, some in costs.items():
            told = f"{statistics.median(some):8.1f} us ({min(some):.1f} to {max(some):.1f})"
            print(f"{name:<31} {told}")


async def measure(count: int, rounds: int, policy: str, gap_ms: float, ports: list[int]) -> None:
    rng = random.Random(1)
    with fleet(policy, gap_ms, ports) as (gateway, bare):
        await wait_until_ready(gateway.port)
        await requests(rng, count, gateway)
        await items(rounds, gateway, bare)
        relay_port, worker_port = bare["http2"].port, ports[0]
        first = await first_token_ms(rng, min(count, 100), gateway.port, relay_port, worker_port)
        print(f"TTFT, worker alone               {first.pop(ALONE):7.2f} ms")
        least = first.pop(RELAY)
        print(f"TTFT, by a bare relay            {least:7.2f} ms")
        for name, wait in first.items():
            print(f"TTFT added, {name:<20} {wait - least:7.2f} ms, beyond the relay")
    before, after, own = tokenized(rng)
    print(
        f"characters tokenized: turns 1 to 4 {before}; then turn 5 {after}, of which its own {own}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3, help="of the output items")
    parser.add_argument("--policy", default="kv_cost")
    parser.add_argument("--gap-ms", type=float, default=10.0, help="between a worker's tokens")
    parser.add_argument(
        "--ports",
        type=int,
        nargs=5,
        default=[19301, 19302, 19300, 19303, 19304],
        help="of two workers, the gateway and two bare loops",
    )
    options = parser.parse_args()
    gap_ms, ports = options.gap_ms, options.ports
    uvloop.run(measure(options.requests, options.rounds, options.policy, gap_ms, ports))


if __name__ == "__main__":
    main()
