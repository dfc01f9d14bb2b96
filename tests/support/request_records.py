"""Request records in one line."""

from collections.abc import Sequence

from radixgate.analysis.records import Arrival, RequestRecord


def record(
    *chunks: tuple[float, int],
    sent: float = 0.0,
    due: float | None = None,
    end: float | None = None,
    failure: str | None = None,
    prompt: int | None = 100,
    cached: int | None = None,
    worker: str | None = None,
    index: int = 0,
) -> RequestRecord:
    """`chunks` are (seconds since the run began, tokens); without `end` the last one ends it."""
    return RequestRecord(
        index=index,
        session=f"r{index}",
        turn=0,
        group=None,
        t_intended_s=sent if due is None else due,
        t_eligible_s=sent if due is None else due,
        t_dispatch_s=sent,
        t_first_byte_s=sent,
        t_last_s=_end(chunks, sent) if end is None else end,
        arrivals=tuple(Arrival(at_s, tokens) for at_s, tokens in chunks),
        output_tokens=sum(tokens for _, tokens in chunks),
        tokens_counted=True,
        planned_prompt_tokens=100,
        prompt_tokens=prompt,
        cached_tokens=cached,
        worker_id=worker,
        finish_reason=None if failure else "length",
        failure=failure,
    )


def _end(chunks: Sequence[tuple[float, int]], sent: float) -> float:
    return chunks[-1][0] if chunks else sent
