"""A server with exact delays is measured to a millisecond or a hundredth, whichever is more."""

import pytest

from radixgate.analysis.summary import Summary, summarise
from radixgate.clock import SystemClock
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.progress import NoProgress
from radixgate.loadgen.prompts import TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, plan
from radixgate.loadgen.server import client_of, server_of
from timed_server import Script, TimedServer, native_event, sse

STREAMS, TOKENS = 10, 9
TTFT_S, GAP_S = 0.200, 0.050
E2E_S = TTFT_S + (TOKENS - 1) * GAP_S
SCRIPT = Script(
    tuple(
        (
            TTFT_S + GAP_S * n,
            sse(
                native_event("w" * (n + 1), n + 1, finish="length" if n == TOKENS - 1 else None),
                *(["[DONE]"] if n == TOKENS - 1 else []),
            ),
        )
        for n in range(TOKENS)
    )
)
ROUNDS = 20
# All are open at once, but the machine is not asked to begin them in one moment.
STARTS_S = [0.013 * n for n in range(STREAMS)]


def errors(run: Summary) -> dict[str, float]:
    """How far the medians are off, as shares of what is allowed."""
    assert run.completed == STREAMS
    found = {}
    for name, spread, truth_s in (
        ("TTFT", run.ttft, TTFT_S),
        ("ITL", run.itl, GAP_S),
        ("TPOT", run.tpot, GAP_S),
        ("E2E", run.e2e, E2E_S),
    ):
        assert spread is not None
        found[name] = abs(spread.p50 - truth_s) / max(0.001, 0.01 * truth_s)
    return found


@pytest.mark.slow
async def test_ten_streams_at_once_are_measured_exactly() -> None:
    """The best of up to twenty rounds for each figure: a busy machine delays some, never all."""
    clock = SystemClock()
    schedule = plan([PlannedPrompt(TextPrompt("a"), 1, TOKENS)] * STREAMS, STARTS_S)
    best = dict.fromkeys(("TTFT", "ITL", "TPOT", "E2E"), float("inf"))
    async with TimedServer(lambda _: SCRIPT) as there:
        config = BenchConfig(backend="sglang", base_url=there.url)
        async with client_of(config, clock) as client:
            server = server_of(config, client, "", clock)
            for _ in range(ROUNDS):
                found = errors(summarise(await server.play(schedule, NoProgress())))
                best = {name: min(error, found[name]) for name, error in best.items()}
                if max(best.values()) <= 1.0:
                    break
    assert max(best.values()) <= 1.0, best
