"""A step-time model fitted to what a bench run saw of a server."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from radixgate.analysis.percentiles import percentile
from radixgate.analysis.records import RequestRecord
from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.engine_model import EngineModel
from radixgate.loadgen.simulator.least_squares import least_squares
from radixgate.loadgen.simulator.neighbours import Neighbours
from radixgate.loadgen.simulator.prompt_fit import LonePrompt, prompt_times, token_time

# Fewer than this say too little, of prompts alone at their worker and of gaps between tokens.
_LEAST_PROMPTS = 10
_LEAST_GAPS = 30
# Gaps that are looked at of each worker's.
_MOST_GAPS = 2_000
# Long gaps are the network's or the client's, short ones tokens that came together.
_TRIM_PERCENT = 5.0

# Other workers that were busy from one time to another, in the mean.
_Busy = Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class _Gap:
    """Time between two tokens of one answer, and what else its worker decoded then."""

    seconds: float
    rows: int
    context_tokens: int
    neighbours: float  # other workers that computed


def fitted(
    records: Sequence[RequestRecord], preset: EngineModel, *, shared_cores: bool = False
) -> EngineModel:
    """From the answers that told their prompt and cached tokens. O(requests a worker x 2,000).

    Decode: gaps between tokens while the worker computes no prompt, as `step + row x sequences +
    context x their tokens`. Prefill: first tokens of prompts that nobody else computed beside, as
    a time a token on top of steps. The chunk is the preset's: a client cannot see it.
    `shared_cores`: from these prompts too, by how much each other worker that has something to do
    meanwhile lengthens them; gaps are taken as lengthened alike.
    Raises ConfigError if the run holds too few of either, or does not tell that.
    """
    by_worker: dict[str | None, list[RequestRecord]] = defaultdict(list)
    for record in records:
        if record.ok and record.arrivals and record.prompt_tokens is not None:
            by_worker[record.worker_id].append(record)
    neighbours = Neighbours(by_worker)
    gaps: list[_Gap] = []
    prompts: list[LonePrompt] = []
    for worker, mine in by_worker.items():
        busy = partial(neighbours.busy, worker) if shared_cores else _nobody
        gaps += _calm_gaps(mine, busy)
        prompts += _alone(mine, busy)
    if len(gaps) < _LEAST_GAPS or len(prompts) < _LEAST_PROMPTS:
        raise ConfigError(
            f"--fit: {len(prompts)} prompts alone at their worker and {len(gaps)} gaps between"
            f" tokens are too few; {_LEAST_PROMPTS} and {_LEAST_GAPS} are needed: run the bench"
            " at a lower --request-rate, with more prompts and with streamed answers"
        )
    token_s, share = prompt_times(prompts) if shared_cores else (token_time(prompts), 0.0)
    kept = _trimmed(gaps)
    step_s, row_s, context_s = least_squares(
        [(1.0, float(gap.rows), float(gap.context_tokens)) for gap in kept],
        [gap.seconds / (1.0 + share * gap.neighbours) for gap in kept],
    )
    token_s -= step_s / preset.chunk_tokens
    if token_s <= 0.0:
        raise ConfigError(
            "--fit: longer prompts did not take longer, so their speed cannot be told; give the"
            " bench prompts of different lengths"
        )
    return replace(
        preset,
        step_s=max(step_s, 1e-6),
        prefill_token_s=token_s,
        decode_row_s=row_s,
        context_token_s=context_s,
        neighbour_share=share,
    )


def _nobody(begins: float, ends: float) -> float:
    return 0.0


def _alone(records: Sequence[RequestRecord], busy: _Busy) -> list[LonePrompt]:
    spans = sorted(
        ((r.t_dispatch_s, r.arrivals[0].at_s, r) for r in records), key=lambda span: span[:2]
    )
    found = []
    busy_until = float("-inf")
    for place, (begins, ends, record) in enumerate(spans):
        next_begins = spans[place + 1][0] if place + 1 < len(spans) else float("inf")
        if begins >= busy_until and ends <= next_begins:
            tokens = (record.prompt_tokens or 0) - (record.cached_tokens or 0)
            found.append(LonePrompt(ends - begins, max(1, tokens), busy(begins, ends)))
        busy_until = max(busy_until, ends)
    return found


def _calm_gaps(records: Sequence[RequestRecord], busy: _Busy) -> list[_Gap]:
    """Gaps of one token during which no prompt of the worker's was on its way; a sample of them."""
    prefills = [(r.t_dispatch_s, r.arrivals[0].at_s) for r in records]
    single = [
        (before.at_s, after.at_s)
        for record in records
        for before, after in pairwise(record.arrivals)
        if after.tokens == 1
    ]
    found = []
    for begins, ends in single[:: -(-len(single) // _MOST_GAPS) or 1]:
        if any(sent < ends and first > begins for sent, first in prefills):
            continue
        middle = (begins + ends) / 2
        decoding = [r for r in records if r.arrivals[0].at_s < middle < r.t_last_s]
        context = sum(_context(r, middle) for r in decoding)
        found.append(_Gap(ends - begins, len(decoding), context, busy(begins, ends)))
    return found


def _context(record: RequestRecord, at_s: float) -> int:
    """Prompt and the tokens so far, taken as evenly spread over the answer."""
    first, last = record.arrivals[0].at_s, record.t_last_s
    share = (at_s - first) / (last - first) if last > first else 1.0
    return (record.prompt_tokens or 0) + int(record.output_tokens * share)


def _trimmed(gaps: Sequence[_Gap]) -> list[_Gap]:
    ordered = sorted(gap.seconds for gap in gaps)
    least, most = percentile(ordered, _TRIM_PERCENT), percentile(ordered, 100 - _TRIM_PERCENT)
    return [gap for gap in gaps if least <= gap.seconds <= most]
