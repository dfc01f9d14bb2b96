"""How long a worker should take to the first token of a prompt."""

import statistics
from collections.abc import Mapping

from radixgate.fleet.worker_record import WorkerRecord


class Forecast:
    """Prompt tokens to be computed before it and for it, over the worker's prefill speed.

    What is decoded meanwhile is not in it, nor a prompt's way there; `radixgate_ttft_ratio` shows
    how far off it is.
    """

    def __init__(self, records: Mapping[str, WorkerRecord], guess: float) -> None:
        """`records` is the fleet's own; `guess`: tokens a second while no worker has told."""
        self._records = records
        self._guess = guess
        self._usual: dict[str, float] = {}  # by model; those asked for since the last news

    def news_of(self, model: str) -> None:
        """A worker of this model has shown another speed, or has gone."""
        self._usual.pop(model, None)

    def ttft_s(self, record: WorkerRecord, uncached_tokens: int, now: float) -> float:
        """Of a prompt of which so many tokens are to be computed. O(1); O(workers) where the speed
        is unknown and there was news since the last such question."""
        report = record.fresh_report(now)
        queued = max(
            record.counts.uncached[record.place], report.queued_uncached_tokens if report else 0
        )
        model = record.identity.model
        speed = record.speed.tokens_per_s or self._usual.get(model) or self._usual_speed(model)
        return (queued + uncached_tokens) / speed

    def _usual_speed(self, model: str) -> float:
        """Kept until there is news."""
        speeds = [
            record.speed.tokens_per_s
            for record in self._records.values()
            if record.identity.model == model and record.speed.tokens_per_s
        ]
        usual = self._usual[model] = statistics.median(speeds) if speeds else self._guess
        return usual
