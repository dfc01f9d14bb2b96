"""What one client process can measure: exactness at 10 and 200 streams, and its highest rate.

PYTHONPATH=tests/support python benchmarks/client_limits.py

A server with exact delays runs in a process of its own; on an idle machine with two cores or more
each has one. A rate counts if the run is valid and TTFT's median is within 1 ms of the script's.
"""

import asyncio
import multiprocessing
from multiprocessing.connection import Connection

import uvloop

from radixgate.analysis.percentiles import Spread
from radixgate.analysis.validity import judge
from radixgate.clock import SystemClock
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.measurement import BenchRun, measure
from radixgate.open_files import raise_limit
from timed_server import Script, TimedServer, native_event, sse

TTFT_S, GAP_S, TOKENS = 0.200, 0.050, 20
E2E_S = TTFT_S + (TOKENS - 1) * GAP_S
RATES = (50, 100, 200, 400, 800)


def script() -> Script:
    last = TOKENS - 1
    return Script(
        tuple(
            (
                TTFT_S + GAP_S * n,
                sse(
                    native_event("w" * (n + 1), n + 1, finish="length" if n == last else None),
                    *(["[DONE]"] if n == last else []),
                ),
            )
            for n in range(TOKENS)
        )
    )


def serve(pipe: Connection) -> None:
    async def main() -> None:
        raise_limit()
        told = script()
        async with TimedServer(lambda _: told) as server:
            pipe.send(server.url)
            await asyncio.Event().wait()

    uvloop.run(main())


def run(url: str, *, count: int, rate: float) -> BenchRun:
    config = BenchConfig(
        backend="sglang",
        base_url=url,
        num_prompts=count,
        random_input_len=8,
        request_rate=rate,
        warmup_requests=200,
        settle_s=0.5,
    )
    return uvloop.run(measure(config, schedule_of(config), SystemClock()))


def off_ms(spread: Spread | None, truth_s: float) -> str:
    assert spread is not None
    return f"{1000 * (spread.p50 - truth_s):+.2f} / {1000 * (spread.p99 - truth_s):+.2f}"


def main() -> None:
    raise_limit()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = ours.recv()
    print("off the script in ms, median / P99:")
    for streams in (10, 200):
        # Poisson arrivals: streams that begin in one moment would also speak in one moment.
        found = run(url, count=5 * streams, rate=streams / E2E_S)
        summary, (client,) = found.summary, found.clients
        print(
            f"{streams:>4} streams: TTFT {off_ms(summary.ttft, TTFT_S)}, "
            f"ITL {off_ms(summary.itl, GAP_S)}, TPOT {off_ms(summary.tpot, GAP_S)}, "
            f"E2E {off_ms(summary.e2e, E2E_S)}; CPU {client.cpu_share:.0%}, "
            f"loop lag P99 {1000 * client.loop_lag_p99_s:.1f} ms",
            flush=True,
        )
    for rate in RATES:
        found = run(url, count=5 * rate, rate=float(rate))
        verdict = judge(found.records, found.clients, open_loop=True, max_concurrency=None)
        said = "valid" if verdict.valid else "INVALID: " + "; ".join(verdict.reasons)
        print(
            f"{rate:>4} req/s, {rate * TOKENS} tokens/s: "
            f"TTFT {off_ms(found.summary.ttft, TTFT_S)}, "
            f"CPU {found.clients[0].cpu_share:.0%}; {said}",
            flush=True,
        )
    server.terminate()


if __name__ == "__main__":
    main()
