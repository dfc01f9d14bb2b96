"""What those who decode notice of a long prompt: their largest gap while it is computed.

    python benchmarks/prefill_beside_decoding.py --model smollm2 --threads 2

Some streams decode; then a long prompt comes. Over the time from its arrival to its first token,
the largest gap between two tokens of any stream is set against the median gap before it came: once
with a chunk that follows `--itl-slo`, once with chunking off, both in one run. The latency to keep
is a multiple of the step measured just before. On a machine that is not quiet read processor time:
`--cpu-time --threads 1`, by which the engine then goes as well.
"""

import argparse
import asyncio
import random
import statistics
import time
from array import array
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from radixgate.clock import Clock, SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.config import EngineConfig
from radixgate.worker.engine import Engine
from radixgate.worker.model_store import open_model
from radixgate.worker.open_engine import open_engine

LONG = 1_000  # the handle of the long prompt
VOCABULARY = 250
STEADY_STEPS = 40


class ProcessorClock:
    """The processor time of this process, all threads together."""

    now = staticmethod(time.process_time)


class Ear:
    """When each stream had its tokens."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.times: dict[int, list[float]] = defaultdict(list)
        self._heard = asyncio.Event()

    def deliver(self, batch: pb.StepBatch) -> None:
        assert not batch.refused, batch.refused
        now = self._clock.now()
        for item in batch.items:
            self.times[item.handle] += [now] * len(item.token_ids)
        self._heard.set()

    async def until(self, handle: int, tokens: int) -> None:
        while len(self.times[handle]) < tokens:
            self._heard.clear()
            await self._heard.wait()

    def gaps(self, handle: int, start_s: float, end_s: float) -> list[float]:
        """Between tokens, of which the later came within this time."""
        pairs = pairwise(self.times[handle])
        return [later - earlier for earlier, later in pairs if start_s <= later <= end_s]


@dataclass(frozen=True)
class Seen:
    step_s: float  # median gap of the streams before the prompt came
    largest_s: float  # gap of any stream while it was computed
    first_token_s: float  # of the prompt

    def show(self, what: str) -> str:
        return (
            f"{what:<28} largest gap {self.largest_s * 1e3:7.0f} ms ="
            f" {self.largest_s / self.step_s:6.1f} x the median step of {self.step_s * 1e3:.1f} ms;"
            f" the prompt's first token after {self.first_token_s:.1f} s"
        )


def submit(handle: int, ids: list[int], tokens: int) -> pb.Submit:
    return pb.Submit(
        handle=handle,
        rid=str(handle),
        input_ids=array("I", ids).tobytes(),
        sampling=pb.Sampling(temperature=0.0, max_tokens=tokens, ignore_eos=True),
        credit=1_000_000,
    )


async def long_prompt(engine: Engine, clock: Clock, args: argparse.Namespace) -> Seen:
    """Streams that decode, and the long prompt among them."""
    rng, ear = random.Random(args.seed), Ear(clock)
    for handle in range(args.streams):
        ids = [rng.randrange(VOCABULARY) for _ in range(args.context)]
        engine.submit(ear, submit(handle, ids, 3_000))
    await ear.until(args.streams - 1, STEADY_STEPS)
    came = clock.now()
    begun = ear.times[args.streams - 1][8]
    steady = [gap for h in range(args.streams) for gap in ear.gaps(h, begun, came)]
    engine.submit(ear, submit(LONG, [rng.randrange(VOCABULARY) for _ in range(args.tokens)], 1))
    await ear.until(LONG, 1)
    first = ear.times[LONG][0]
    # The gap that ends with the step of its first token is part of it.
    largest = max(gap for h in range(args.streams) for gap in ear.gaps(h, came, first))
    engine.detach(ear)
    return Seen(statistics.median(steady), largest, first - came)


async def play(args: argparse.Namespace, chunk: int, slo_ms: float | None) -> Seen:
    config = EngineConfig(
        model_path=args.model,
        threads=args.threads,
        page_size=args.page_size,
        weights=args.weights,
        chunked_prefill_size=chunk,
        itl_slo=slo_ms,
        disable_radix_cache=True,
        max_total_tokens=args.tokens + 4_000 * args.streams,
    )
    clock: Clock = ProcessorClock() if args.cpu_time else SystemClock()
    engine = open_engine(config, open_model(args.model), clock)
    engine.start()
    try:
        return await long_prompt(engine, clock, args)
    finally:
        engine.stop()


async def measure(args: argparse.Namespace) -> None:
    about = "processor time" if args.cpu_time else "on the clock"
    print(f"{args.model}, {args.weights}, {args.streams} streams, {args.threads} threads, {about}")
    off = await play(args, -1, None)
    print(off.show("chunking off"), flush=True)
    for _ in range(args.repeats):
        slo_ms = args.slo_steps * off.step_s * 1e3
        slo = await play(args, 512, slo_ms)
        print(slo.show(f"--itl-slo {slo_ms:.0f}"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--weights", default="fp32", choices=("fp32", "q4"))
    parser.add_argument("--tokens", type=int, default=4000, help="of the long prompt")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--context", type=int, default=64, help="tokens of a stream's prompt")
    parser.add_argument("--slo-steps", type=float, default=2.0, help="--itl-slo in median steps")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--page-size", type=int, default=16, help="the least chunk there is")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
