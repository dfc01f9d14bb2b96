"""What those who decode notice of a long prompt: their largest gap while it is computed.

    python benchmarks/prefill_beside_decoding.py --model smollm2 --threads 2

Some streams decode; then a long prompt comes. Over the time from its arrival to its first token,
the largest gap between two tokens of any stream is set against the median gap before it came: once
with a chunk that follows `--itl-slo`, once with chunking off, both in one run. The latency to keep
is a multiple of the step that the same streams take by themselves just before, in an engine of
their own: a step changes by half within minutes where the machine has other users. The median gap
of that time itself is printed beside, and nothing is judged by it: it holds the chunk, so that any
even chunk would do.

Of the largest gap is told how much of the prompt was computed in it, and what processor time this
process and the rest of the machine (Linux, to 10 ms) took meanwhile: on a machine that is not quiet
the largest gap is somebody else's. There read processor time: `--cpu-time --threads 1`, by which
the engine then goes as well.
"""

import argparse
import asyncio
import gc
import os
import random
import statistics
import time
from array import array
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from radixgate.clock import Clock, SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.spare_collector import spare_collector
from radixgate.worker.engine.engine import Engine
from radixgate.worker.engine.open_engine import open_engine
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.weights.model_store import open_model

LONG = 1_000  # the handle of the long prompt
VOCABULARY = 250
STEADY_STEPS = 40
MOST_STEPS = 3.0  # asked of the largest gap


class ProcessorClock:
    """The processor time of this process, all threads together."""

    now = staticmethod(time.process_time)


@dataclass(frozen=True)
class Moment:
    """When a step's tokens came, and what had been used by then."""

    at_s: float
    own_s: float  # processor time
    machine_s: float  # processor time of all processes, this one too
    prompt_tokens: int  # computed

    @classmethod
    def now(cls, clock: Clock, engine: Engine) -> "Moment":
        computed = engine.stats().prefill_tokens_total
        return cls(clock.now(), time.process_time(), machine_s(), computed)


def machine_s() -> float:
    with open("/proc/stat", encoding="ascii") as stat:
        fields = [int(field) for field in stat.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Gap:
    """Between two tokens of a stream."""

    begin: Moment
    end: Moment

    @property
    def seconds(self) -> float:
        return self.end.at_s - self.begin.at_s

    def show(self) -> str:
        begin, end = self.begin, self.end
        own_s, all_s = end.own_s - begin.own_s, end.machine_s - begin.machine_s
        return (
            f"{end.prompt_tokens - begin.prompt_tokens} tokens of the prompt,"
            f" {own_s * 1e3:.0f} ms of processor here,"
            f" {max(0.0, all_s - own_s) * 1e3:.0f} ms elsewhere"
        )


class Ear:
    """When each stream had its tokens."""

    def __init__(self, clock: Clock, engine: Engine) -> None:
        self._clock = clock
        self._engine = engine
        self.times: dict[int, list[Moment]] = defaultdict(list)
        self._heard = asyncio.Event()

    def deliver(self, batch: pb.StepBatch) -> None:
        assert not batch.refused, batch.refused
        now = Moment.now(self._clock, self._engine)
        for item in batch.items:
            self.times[item.handle] += [now] * len(item.token_ids)
        self._heard.set()

    async def until(self, handle: int, tokens: int) -> None:
        while len(self.times[handle]) < tokens:
            self._heard.clear()
            await self._heard.wait()

    def gaps(self, handle: int, start_s: float, end_s: float) -> list[Gap]:
        """Between tokens, of which the later came within this time."""
        gaps = [Gap(earlier, later) for earlier, later in pairwise(self.times[handle])]
        return [gap for gap in gaps if start_s <= gap.end.at_s <= end_s]


@dataclass(frozen=True)
class Seen:
    step_s: float  # median gap of the streams before the prompt came
    during: list[Gap]  # of all streams while it was computed
    first_token_s: float  # of the prompt

    @property
    def largest(self) -> Gap:
        return max(self.during, key=lambda gap: gap.seconds)

    @property
    def steps(self) -> float:
        """The largest gap in median steps."""
        return self.largest.seconds / self.step_s

    def show(self, what: str) -> str:
        within = sum(gap.seconds <= MOST_STEPS * self.step_s for gap in self.during)
        during_s = statistics.median(gap.seconds for gap in self.during)
        return (
            f"{what:<16} largest gap {self.largest.seconds * 1e3:7.0f} ms ="
            f" {self.steps:6.1f} x the median step of {self.step_s * 1e3:.1f} ms before"
            f" ({self.largest.seconds / during_s:.1f} x the median gap of {during_s * 1e3:.0f} ms"
            f" meanwhile); the prompt's first token after {self.first_token_s:.1f} s\n"
            f"{'':<16} {len(self.during) - within} of {len(self.during)} gaps are over"
            f" {MOST_STEPS:g} x; in the largest: {self.largest.show()}"
        )


def submit(handle: int, ids: list[int], tokens: int) -> pb.Submit:
    return pb.Submit(
        handle=handle,
        rid=str(handle),
        input_ids=array("I", ids).tobytes(),
        sampling=pb.Sampling(temperature=0.0, max_tokens=tokens, ignore_eos=True),
        credit=1_000_000,
    )


async def steady_step_s(engine: Engine, ear: Ear, clock: Clock, args: argparse.Namespace) -> float:
    """Lets the streams begin, and waits for their median gap."""
    rng = random.Random(args.seed)
    for handle in range(args.streams):
        ids = [rng.randrange(VOCABULARY) for _ in range(args.context)]
        engine.submit(ear, submit(handle, ids, 3_000))
    await ear.until(args.streams - 1, STEADY_STEPS)
    begun = ear.times[args.streams - 1][8].at_s
    now = clock.now()
    return statistics.median(
        gap.seconds for h in range(args.streams) for gap in ear.gaps(h, begun, now)
    )


async def long_prompt(engine: Engine, ear: Ear, clock: Clock, args: argparse.Namespace) -> Seen:
    """Streams that decode, and the long prompt among them."""
    step_s = await steady_step_s(engine, ear, clock, args)
    rng, came = random.Random(args.seed + 1), clock.now()
    engine.submit(ear, submit(LONG, [rng.randrange(VOCABULARY) for _ in range(args.tokens)], 1))
    await ear.until(LONG, 1)
    first = ear.times[LONG][0].at_s
    # The gap that ends with the step of its first token is part of it.
    during = [gap for h in range(args.streams) for gap in ear.gaps(h, came, first)]
    return Seen(step_s, during, first - came)


T = TypeVar("T")
Scene = Callable[[Engine, Ear, Clock, argparse.Namespace], Awaitable[T]]


async def play(scene: Scene[T], args: argparse.Namespace, chunk: int, slo_ms: float | None) -> T:
    """The scene in an engine of its own."""
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
    # The last calls of the engine before hold it until the loop has made them, and to free its two
    # gigabytes takes as long as many steps: that must not come in the middle of a run.
    await asyncio.sleep(0.1)
    gc.collect()
    engine = open_engine(config, open_model(args.model), clock)
    ear = Ear(clock, engine)
    spare_collector()  # as a worker does
    engine.start()
    try:
        return await scene(engine, ear, clock, args)
    finally:
        engine.detach(ear)
        engine.stop()
        gc.unfreeze()


async def measure(args: argparse.Namespace) -> None:
    about = "processor time" if args.cpu_time else "on the clock"
    print(f"{args.model}, {args.weights}, {args.streams} streams, {args.threads} threads, {about}")
    off = await play(long_prompt, args, -1, None)
    print(off.show("chunking off"), flush=True)
    kept = 0
    for _ in range(args.repeats):
        slo_ms = args.slo_steps * await play(steady_step_s, args, 512, None) * 1e3
        slo = await play(long_prompt, args, 512, slo_ms)
        kept += slo.steps <= MOST_STEPS
        print(slo.show(f"--itl-slo {slo_ms:.0f}"), flush=True)
    print(f"{kept} of {args.repeats} runs with at most {MOST_STEPS:g} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--weights", default="fp32", choices=("fp32", "q4"))
    parser.add_argument("--tokens", type=int, default=4000, help="of the long prompt")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--context", type=int, default=64, help="tokens of a stream's prompt")
    parser.add_argument("--slo-steps", type=float, default=2.0, help="--itl-slo in median steps")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--page-size", type=int, default=16)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
