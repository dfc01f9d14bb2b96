"""The simulator with a large fleet: seconds and memory for one policy on one core.

    python benchmarks/simulator_scale.py --trace FILE [--workers 1000] [--requests 300000]

FILE is an open-loop trace in Mooncake's form, such as Mooncake's conversation trace. Copies of it,
none of which shares a block with another, are played at once until there are enough requests.
"""

import argparse
import random
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from radixgate.loadgen.simulator.engine_model import engine_named
from radixgate.loadgen.simulator.results import results_of, table
from radixgate.loadgen.simulator.rules import rule_named
from radixgate.loadgen.simulator.simulation import SimulatedSite, Simulation
from radixgate.loadgen.simulator.trace import TracedRequest, jittered, read_trace
from radixgate.loadgen.simulator.workload import open_loop
from radixgate.policies.registry import PolicyConfigs

BLOCK = 512
# What eight workers answer of the conversation trace when everything is sent at once, over eight.
REQUESTS_PER_S_AND_WORKER = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--policy", default="kv_cost")
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--requests", type=int, default=300_000)
    parser.add_argument("--load", type=float, default=0.8)
    words = parser.parse_args()
    requests = copies(read_trace(words.trace, BLOCK), words.requests)
    pace = words.load * words.workers * REQUESTS_PER_S_AND_WORKER
    site = SimulatedSite(words.workers, 4_000, BLOCK, engine_named("study-70b"))
    began, cpu = time.perf_counter(), time.process_time()
    simulation = Simulation(site, rule_named(words.policy, PolicyConfigs()), seed=0)
    run = simulation.run(open_loop(requests, pace))
    print(table({words.policy: results_of(run)}))
    print(
        f"{len(requests):,} requests over {words.workers:,} workers:"
        f" {time.perf_counter() - began:.0f} s, {time.process_time() - cpu:.0f} s of CPU,"
        f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB at most"
    )


def copies(requests: Sequence[TracedRequest], wanted: int) -> list[TracedRequest]:
    rng = random.Random(0)
    apart = max(max(request.ids, default=0) for request in requests)
    made: list[TracedRequest] = []
    while len(made) < wanted:
        shift = apart * (len(made) // len(requests))
        made += [
            replace(
                request,
                ids=tuple(block + shift for block in request.ids),
                fingerprint=request.fingerprint + 2 * shift,
            )
            for request in jittered(requests, rng)[: wanted - len(made)]
        ]
    return sorted(made, key=lambda request: request.at_s)


if __name__ == "__main__":
    main()
