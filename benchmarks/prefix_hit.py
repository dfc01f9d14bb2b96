"""Time to first token of a prompt and of the same prompt again, through a worker's own server.

    python benchmarks/prefix_hit.py --model smollm2 --tokens 2000

Each pair is a new random prompt, so that its first time nothing of it is cached.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time

import aiohttp

from radixgate.processes import Child
from radixgate.ready_lines import WORKER_READY

VOCABULARY = 250  # every model here has these ids
READY_WITHIN_S = 120.0


async def first_token_s(session: aiohttp.ClientSession, url: str, ids: list[int]) -> float:
    """From the request to the first event of its stream."""
    body = {"input_ids": ids, "stream": True, "sampling_params": {"max_new_tokens": 2}}
    started = time.perf_counter()
    async with session.post(url, json=body) as answer:
        assert answer.status == 200, await answer.text()
        await answer.content.readline()
        took = time.perf_counter() - started
        await answer.read()
    return took


async def measure(args: argparse.Namespace) -> None:
    flags = ["--model-path", args.model, "--threads", str(args.threads), "--weights", args.weights]
    command = [sys.executable, "-m", "radixgate.cli", "worker", *flags]
    command += ["--port", "0", "--grpc-port", "0"]
    worker = await Child.start("worker", command, ready=WORKER_READY)
    try:
        url = f"http://{(await worker.wait_ready(READY_WITHIN_S))['http']}/generate"
        rng = random.Random(args.seed)
        async with aiohttp.ClientSession() as session:
            await first_token_s(session, url, [1, 2, 3])  # to warm up
            firsts, seconds = [], []
            for _ in range(args.pairs):
                ids = [rng.randrange(VOCABULARY) for _ in range(args.tokens)]
                firsts.append(await first_token_s(session, url, ids))
                seconds.append(await first_token_s(session, url, ids))
    finally:
        await worker.stop(10.0)
    first, second = statistics.median(firsts), statistics.median(seconds)
    ratio = statistics.median(b / a for a, b in zip(firsts, seconds, strict=True))
    print(
        f"{args.model}, {args.weights}, {args.tokens} tokens, {args.threads} threads, medians of"
        f" {args.pairs}: first {first * 1e3:.0f} ms, again {second * 1e3:.1f} ms: 1/{1 / ratio:.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--weights", default="fp32", choices=("fp32", "q4"))
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
