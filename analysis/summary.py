"""All the figures of one run, from its request records."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis import latency
from radixgate.analysis.percentiles import Spread, spread_of
from radixgate.analysis.records import ABANDONED, RequestRecord
from radixgate.analysis.run_span import run_span_s


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers. Times in seconds; a Spread that is None had nothing to describe.

    Everything but `offered`, `failures`, `wall_s` and `schedule_lag` is of successes only.
    """

    offered: int  # without those that the client gave up
    abandoned: int
    completed: int
    failures: Mapping[str, int]  # by class, most frequent first
    duration_s: float  # of `run_span_s`
    wall_s: float  # from the first dispatch to the end of the last request, failed or not
    input_tokens: int
    input_tokens_planned: int  # the share of input_tokens that no server reported
    output_tokens: int
    cached_token_share: float | None  # of the prompt tokens; None: no answer told
    tokens_estimated: int  # answers whose tokens were shared out by length of text
    request_rate: float  # all rates: per second of duration_s
    input_token_rate: float
    output_token_rate: float
    concurrency: float
    e2e: Spread | None
    ttft: Spread | None
    tpot: Spread | None
    itl: Spread | None  # per token, over all tokens of all requests
    itl_gap: Spread | None  # per event
    response_ttft: Spread | None
    response_e2e: Spread | None
    schedule_lag: Spread | None
    workers: Mapping[str, int]  # successes by x-radixgate-worker, in order of name

    @property
    def total_token_rate(self) -> float:
        return self.input_token_rate + self.output_token_rate

    @property
    def failed(self) -> int:
        return self.offered - self.completed


def summarise(records: Sequence[RequestRecord]) -> Summary:
    """O(tokens log tokens)."""
    good = [record for record in records if record.ok]
    start, end = run_span_s(records)
    sent = [record for record in records if record.failure != ABANDONED]
    duration = end - start
    input_tokens = sum(_prompt_tokens(record) for record in good)
    output_tokens = sum(record.output_tokens for record in good)
    failures = Counter(record.failure for record in sent if record.failure is not None)
    workers = Counter(record.worker_id for record in good if record.worker_id is not None)
    return Summary(
        offered=len(sent),
        abandoned=len(records) - len(sent),
        completed=len(good),
        failures=dict(sorted(failures.items(), key=lambda item: (-item[1], item[0]))),
        duration_s=duration,
        wall_s=max((record.t_last_s for record in records), default=start) - start,
        input_tokens=input_tokens,
        input_tokens_planned=sum(
            record.planned_prompt_tokens for record in good if record.prompt_tokens is None
        ),
        output_tokens=output_tokens,
        cached_token_share=_cached_share(good),
        tokens_estimated=sum(not record.tokens_counted for record in good),
        request_rate=latency.rate(len(good), duration),
        input_token_rate=latency.rate(input_tokens, duration),
        output_token_rate=latency.rate(output_tokens, duration),
        concurrency=latency.concurrency(good, duration),
        e2e=spread_of(map(latency.e2e_s, good)),
        ttft=_spread_of_some(latency.ttft_s, good),
        tpot=_spread_of_some(latency.tpot_s, good),
        itl=spread_of(value for record in good for value in latency.itl_tokens_s(record)),
        itl_gap=spread_of(value for record in good for value in latency.itl_gaps_s(record)),
        response_ttft=_spread_of_some(latency.response_ttft_s, good),
        response_e2e=spread_of(map(latency.response_e2e_s, good)),
        schedule_lag=spread_of(map(latency.schedule_lag_s, sent)),
        workers=dict(sorted(workers.items())),
    )


def _prompt_tokens(record: RequestRecord) -> int:
    return record.planned_prompt_tokens if record.prompt_tokens is None else record.prompt_tokens


def _cached_share(good: Iterable[RequestRecord]) -> float | None:
    told = [record for record in good if record.cached_tokens is not None]
    prompt_tokens = sum(_prompt_tokens(record) for record in told)
    if prompt_tokens == 0:
        return None
    return sum(record.cached_tokens or 0 for record in told) / prompt_tokens


def _spread_of_some(
    figure: Callable[[RequestRecord], float | None], records: Iterable[RequestRecord]
) -> Spread | None:
    return spread_of(value for value in map(figure, records) if value is not None)
