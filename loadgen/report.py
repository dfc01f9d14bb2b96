"""The table of a run: SGLang's rows in its order, then what it does not show."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from radixgate.analysis.percentiles import Spread, values_needed
from radixgate.analysis.summary import Summary
from radixgate.loadgen.config import BenchConfig

_WIDTH = 50
_LABEL = 40
ABSENT = "-"
_NONE: Mapping[str, str] = MappingProxyType({})

_FORMULAS = (
    "TTFT = first token - dispatch. E2E = last token - dispatch.",
    "TPOT = (last - first token) / (output tokens - 1), per request.",
    "ITL  = gap between events / tokens in the later one, per token.",
    "Concurrency = sum of E2E / duration.",
    "Duration: first dispatch to the last token of a success, or the last dispatch if later.",
)


def table(config: BenchConfig, summary: Summary, messages: Mapping[str, str] = _NONE) -> str:
    """The whole report as text; a figure with nothing to measure is a dash.

    `messages`: what the first failure of each class said.
    """
    return "\n".join(
        [
            *_classic(config, summary),
            *_further(config, summary),
            *_failures(summary, messages),
            "-" * _WIDTH,
            *_FORMULAS,
            *_notes(summary),
            "=" * _WIDTH,
        ]
    )


def _classic(config: BenchConfig, summary: Summary) -> Iterator[str]:
    yield f"{' Serving Benchmark Result ':=^{_WIDTH}}"
    yield _row("Backend:", config.backend)
    yield _row("Traffic request rate:", f"{config.request_rate:g}")
    yield _row("Max request concurrency:", config.max_concurrency or "not set")
    yield _row("Successful requests:", summary.completed)
    yield _row("Benchmark duration (s):", f"{summary.duration_s:.2f}")
    yield _row("Total input tokens:", summary.input_tokens)
    yield _row("Total generated tokens:", summary.output_tokens)
    yield _row("Request throughput (req/s):", f"{summary.request_rate:.2f}")
    yield _row("Input token throughput (tok/s):", f"{summary.input_token_rate:.2f}")
    yield _row("Output token throughput (tok/s):", f"{summary.output_token_rate:.2f}")
    yield _row("Total token throughput (tok/s):", f"{summary.total_token_rate:.2f}")
    yield _row("Concurrency:", f"{summary.concurrency:.2f}")
    yield _section("End-to-End Latency")
    yield from _spread("E2E Latency", summary.e2e, "mean", "p50")
    yield _section("Time to First Token")
    yield from _spread("TTFT", summary.ttft, "mean", "p50", "p99")
    yield _section("Inter-Token Latency")
    yield from _spread("ITL", summary.itl, "mean", "p50", "p95", "p99", "max")


def _further(config: BenchConfig, summary: Summary) -> Iterator[str]:
    yield _section("Time per Output Token")
    yield from _spread("TPOT", summary.tpot, "mean", "p50", "p99", refuse=True)
    if config.open_loop:
        yield _section("From the intended time")
        for name, spread in (
            ("response TTFT", summary.response_ttft),
            ("response E2E", summary.response_e2e),
        ):
            yield from _spread(name, spread, "mean", "p50", "p99", refuse=True)
        yield from _spread("schedule lag", summary.schedule_lag, "p50", "max")
    yield _section("Prefix Cache and Workers")
    share = summary.cached_token_share
    yield _row("Cached token share:", "not reported" if share is None else f"{share:.3f}")
    for worker, requests in summary.workers.items():
        yield _row(f"Requests by {worker}:", requests)


def _failures(summary: Summary, messages: Mapping[str, str]) -> Iterator[str]:
    yield _section("Failures")
    yield _row("Failed requests:", summary.failed)
    for failure, requests in summary.failures.items():
        yield _row(f"  {failure}:", requests)
        if failure in messages:
            yield f"    {messages[failure]}"


def _notes(summary: Summary) -> Iterator[str]:
    measured = summary.ttft.n if summary.ttft else 0
    needed = values_needed(99)
    if 0 < measured < needed:
        yield f"NOTE: P99 TTFT rests on n = {measured}; it takes {needed} to mean much."
    if summary.tokens_estimated:
        yield (
            f"NOTE: {summary.tokens_estimated} answers told no count per event; their tokens are "
            "shared out by length of text."
        )
    if summary.input_tokens_planned:
        yield (
            f"NOTE: {summary.input_tokens_planned} input tokens are as planned; the server did "
            "not count them."
        )
    if summary.failed:
        yield f"FAILED: {summary.failed} of {summary.offered} requests; the figures leave them out."


_WORDS = {"mean": "Mean", "p50": "Median", "p95": "P95", "p99": "P99", "max": "Max"}


def _spread(name: str, spread: Spread | None, *figures: str, refuse: bool = False) -> Iterator[str]:
    """`refuse` a P99 that too few values hold up; SGLang's own rows show it, with a note."""
    for figure in figures:
        value = ABSENT if spread is None else f"{1000 * getattr(spread, figure):.2f}"
        needed = values_needed(99)
        if refuse and figure == "p99" and spread is not None and spread.n < needed:
            value = f"n = {spread.n} < {needed}"
        yield _row(f"{_WORDS[figure]} {name} (ms):", value)


def _row(label: str, value: object) -> str:
    return f"{label:<{_LABEL}} {value}"


def _section(title: str) -> str:
    return f"{title:-^{_WIDTH}}"
