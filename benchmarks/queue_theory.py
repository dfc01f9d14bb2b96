"""The runner and the figures against M/M/1 in virtual time, 500,000 arrivals at two loads.

PYTHONPATH=tests/support python benchmarks/queue_theory.py
"""

import asyncio
import sys

from radixgate.analysis import latency
from radixgate.analysis.records import Arrival, RequestRecord
from radixgate.analysis.window import steady_window
from radixgate.loadgen.answers import Answer
from radixgate.loadgen.arrivals import arrival_times
from radixgate.loadgen.exchange import Exchange
from radixgate.loadgen.progress import NoProgress
from radixgate.loadgen.prompts import TextPrompt
from radixgate.loadgen.runner import Runner
from radixgate.loadgen.schedule import PlannedPrompt, ScheduledRequest, plan, stream_of
from virtual_time import LoopClock, run_virtually

ARRIVALS = 500_000
ALLOWED = 0.03
CLOCK = LoopClock()


def main() -> int:
    worst = 0.0
    for load in (0.5, 0.8):
        records = run_virtually(played(load))
        truth_s = 1.0 / (1.0 - load)
        mean_s = sum(map(latency.e2e_s, records)) / len(records)
        window = steady_window(records, open_loop=True)
        assert window is not None
        off = mean_s / truth_s - 1.0
        worst = max(worst, abs(off))
        print(
            f"load {load}: mean sojourn {mean_s:.4f} s, theory {truth_s:.4f} s ({off:+.2%}); "
            f"Little's law {window.little_error:+.3%}, steady {window.steady}",
            flush=True,
        )
    return 0 if worst <= ALLOWED else 1


async def played(load: float) -> list[RequestRecord]:
    """Service rate 1, one place, `load` arrivals a second."""
    rng = stream_of(5, f"service/{load}")
    times_s = arrival_times(
        "poisson", count=ARRIVALS, requests_per_s=load, rng=stream_of(5, f"arrivals/{load}")
    )
    service_s = [rng.expovariate(1.0) for _ in range(ARRIVALS)]
    place = asyncio.Semaphore(1)

    async def send(request: ScheduledRequest) -> Exchange:
        start_s = CLOCK.now()
        async with place:
            await asyncio.sleep(service_s[request.index])
        return Exchange(t_dispatch_s=start_s, t_end_s=CLOCK.now(), status=200)

    def read(exchange: Exchange) -> Answer:
        return Answer(exchange.t_end_s, (Arrival(exchange.t_end_s, 1),), output_tokens=1)

    schedule = plan([PlannedPrompt(TextPrompt("a"), 1, 1)] * ARRIVALS, times_s)
    return await Runner(send, read, CLOCK, NoProgress()).play(schedule)


if __name__ == "__main__":
    sys.exit(main())
