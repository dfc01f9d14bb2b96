"""Match time, events a second and bytes an entry of the radix mirror."""

import argparse
import random
import statistics
import time
import tracemalloc
from array import array
from collections.abc import Callable

from radixgate.clock import SystemClock
from radixgate.proto.blocks import chain, root_id
from radixgate.proto.kv_events import Pending, Removed, Settled, Stored
from radixgate.radix_mirror.mirror import RadixMirror

RUN = 16  # blocks a prefill step of 1,024 tokens stores at page 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=256)
    args = parser.parse_args()
    bytes_an_entry(args.entries, args.workers)
    events_a_second(args.entries // 4, args.workers)
    for blocks in (32, 512, 2_048):
        match(blocks, args.workers)
    dispatch(512)
    full_pool(256)
    beside_claims(1_000)
    purge(args.entries)


def match(blocks: int, workers: int) -> None:
    """Depth over all workers, each holding a random share of the prompt."""
    rng = random.Random(0)
    mirror = mirror_of(workers)
    tokens = array("I", (rng.randrange(50_000) for _ in range(blocks * 64)))
    root = root_id("bench")
    prompt = chain(root, tokens, 64)
    for worker in range(workers):
        mirror.apply(f"w{worker}", 1, [Stored(0, prompt[: rng.randint(1, blocks)])])
    name = f"match, {blocks} blocks, {workers} workers"
    report(name, micros(lambda: mirror.depths(prompt), 500), "us")
    both = micros(lambda: mirror.depths(chain(root, tokens, 64)), 200)
    report(f"hash at page 64 and {name}", both, "us")


def dispatch(blocks: int) -> None:
    """A prompt of which nothing is held, expected on a worker and withdrawn."""
    rng = random.Random(0)
    mirror = mirror_of(2)
    prompt = prompt_of(rng, blocks)

    def expect() -> None:
        placement = mirror.expect("w0", prompt, 2.0)
        assert placement
        mirror.withdraw(placement)

    report(f"expect and withdraw, {blocks} new blocks", micros(expect, 300), "us")


def full_pool(blocks: int) -> None:
    """A prompt's whole life where the pool is full: looked for, sent, waiting, an old one removed,
    stored. Processor time, as all of it is one loop's."""
    rng = random.Random(0)
    mirror = mirror_of(1)
    old = [prompt_of(rng, blocks) for _ in range(76_800 // blocks)]
    for ids in old:
        mirror.apply("w0", 1, [Stored(0, ids)])
    lives, removals = [], []
    for key in range(600):
        ids = prompt_of(rng, blocks)
        began = time.thread_time()
        mirror.expect("w0", ids, 6.0, mirror.column(ids)[0])
        mirror.apply("w0", 1, [Pending(key, 0, ids)])
        removing = time.thread_time()
        mirror.apply("w0", 1, [Removed(old[key])])
        removed = time.thread_time()
        mirror.apply("w0", 1, [Settled(key), Stored(0, ids)])
        old.append(ids)
        lives.append(time.thread_time() - began)
        removals.append(removed - removing)
    report(f"life of {blocks} blocks on a full pool", statistics.median(lives) * 1e6, "us")
    report("of which an old prompt's removal", statistics.median(removals) * 1e6, "us")


def beside_claims(prompts: int) -> None:
    """Single blocks are removed while many prompts are on their way."""
    rng = random.Random(0)
    mirror = mirror_of(1)
    stored = prompt_of(rng, 2_000)
    mirror.apply("w0", 1, [Stored(0, stored)])
    for _ in range(prompts):
        mirror.expect("w0", prompt_of(rng, 128), 60.0)
    left = iter(stored)
    name = f"removing a block, {prompts:,} prompts on their way"
    report(name, micros(lambda: mirror.apply("w0", 1, [Removed([next(left)])]), 1_000), "us")


def events_a_second(blocks: int, workers: int) -> None:
    rng = random.Random(0)
    mirror = mirror_of(workers)
    runs = [prompt_of(rng, RUN) for _ in range(blocks // RUN)]
    began = time.perf_counter()
    for number, run in enumerate(runs):
        mirror.apply(f"w{number % workers}", 1, [Stored(0, run)])
    report("stored blocks a second", blocks / (time.perf_counter() - began), "1/s")
    began = time.perf_counter()
    for number, run in enumerate(runs):
        mirror.apply(f"w{number % workers}", 1, [Removed(run)])
    report("removed blocks a second", blocks / (time.perf_counter() - began), "1/s")


def bytes_an_entry(entries: int, workers: int) -> None:
    """Memory of blocks held by one worker each, and of blocks held by a random eight."""
    for holders in (1, 8):
        rng = random.Random(0)
        mirror = mirror_of(workers)
        tracemalloc.start()
        for _ in range(entries // RUN):
            run = prompt_of(rng, RUN)
            for worker in rng.sample(range(workers), min(holders, workers)):
                mirror.apply(f"w{worker}", 1, [Stored(0, run)])
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        report(f"bytes an entry of {len(mirror):,}, {holders} holders", held / len(mirror), "B")


def purge(entries: int) -> None:
    rng = random.Random(0)
    mirror = mirror_of(2)
    mirror.apply("w0", 1, [Stored(0, prompt_of(rng, entries - 1_000))])
    mirror.apply("w1", 1, [Stored(0, prompt_of(rng, 1_000))])
    began = time.perf_counter()
    mirror.remove_worker("w1")
    report(f"removing a worker from {entries:,} entries", (time.perf_counter() - began) * 1e3, "ms")


def mirror_of(workers: int) -> RadixMirror:
    mirror = RadixMirror(SystemClock())
    for worker in range(workers):
        mirror.add_worker(f"w{worker}")
        mirror.reset(f"w{worker}", 1)
    return mirror


def prompt_of(rng: random.Random, blocks: int) -> "array[int]":
    return array("Q", (rng.getrandbits(64) for _ in range(blocks)))


def micros(call: Callable[[], object], times: int) -> float:
    laps = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        laps.append(time.perf_counter() - began)
    return statistics.median(laps) * 1e6


def report(what: str, value: float, unit: str) -> None:
    print(f"{what:<58} {value:>14,.1f} {unit}")


if __name__ == "__main__":
    main()
