"""What one routing decision costs: hash, match, candidates, policy and books."""

import random
import statistics
import time
from array import array

from radixgate.clock import SystemClock
from radixgate.fleet.fleet import Ask, Fleet, MirrorKey, Outcome, WorkerIdentity, WorkerState
from radixgate.fleet.load_report import LoadReport
from radixgate.policies.registry import POLICIES, make_policy
from radixgate.proto.blocks import chain, root_id
from radixgate.proto.kv_events import Stored

ROOT = root_id("bench")


def main() -> None:
    for workers, tokens, page in ((8, 2_048, 64), (256, 32_768, 64), (256, 32_768, 16)):
        for policy in POLICIES:
            decide(policy, workers, tokens, page)


def decide(policy: str, workers: int, tokens: int, page: int) -> None:
    """Prompts of which a random share is cached on each worker; the last turn's share is new."""
    clock, rng = SystemClock(), random.Random(0)
    key = MirrorKey("bench", "tokens", page)
    fleet = Fleet(make_policy(policy, clock, rng), clock, rng)
    prompt = array("I", (rng.randrange(50_000) for _ in range(tokens)))
    ids = chain(ROOT, prompt, page)
    for name in (f"w{n}" for n in range(workers)):
        fleet.admit(identity(name, key))
        fleet.set_state(name, WorkerState.READY)
        fleet.report_load(name, LoadReport(3, 0, 0, 0, 0, 0, 1_000_000, 0, 0))
        mirror = fleet.mirror_of(name)
        mirror.reset(name, 1)
        mirror.apply(name, 1, [Stored(0, ids[: rng.randint(1, len(ids) * 9 // 10)])])
    laps = []
    for _ in range(300):
        began = time.thread_time()
        ask = Ask("bench", tokens, {key: chain(ROOT, prompt, page)})
        lease = fleet.lease(ask)
        laps.append((time.thread_time() - began) * 1e6)
        lease.close(Outcome.FAILED)
    p99 = statistics.quantiles(laps, n=100)[98]
    what = f"{policy}: {workers} workers, {tokens:,} tokens, page {page}"
    print(f"{what:<58} p50 {statistics.median(laps):>7.0f} us   p99 {p99:>7.0f} us")


def identity(name: str, key: MirrorKey) -> WorkerIdentity:
    return WorkerIdentity(
        id=name,
        url=f"grpc://{name}",
        kind="grpc",
        model="bench",
        mirror=key,
        capacity_tokens=None,
        weights_id="bench",
        instance_id="",
        reports_kv=True,
    )


if __name__ == "__main__":
    main()
