"""How long requests take: each is counted once a request, gaps between tokens once a token."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from radixgate.worker.engine.histogram import Histogram, HistogramCounts
from radixgate.worker.requests.sequence import Request, TokenSequence

_REQUEST_S = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 25, 50, 100, 200, 400)
_GAP_S = (0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.4, 0.8, 1.5, 3, 6)

# The names of the histograms, and what they say.
ABOUT: Mapping[str, str] = {
    "time_to_first_token": "from arrival to a request's first token",
    "inter_token_latency": "between two tokens of an output",
    "e2e_request_latency": "from arrival to the end of a request that was not aborted",
    "queue_time": "from arrival to a request's first admission",
}


@dataclass(slots=True)
class Latencies:
    """The four histograms while they grow. A retraction's pause is a gap, not a new request."""

    first_token: Histogram = field(default_factory=lambda: Histogram(_REQUEST_S))
    gap: Histogram = field(default_factory=lambda: Histogram(_GAP_S))
    end_to_end: Histogram = field(default_factory=lambda: Histogram(_REQUEST_S))
    queue: Histogram = field(default_factory=lambda: Histogram(_REQUEST_S))

    def admitted(self, request: Request, now_s: float) -> None:
        """For the first time."""
        self.queue.observe(now_s - request.arrived_s)

    def token(self, sequence: TokenSequence, now_s: float) -> None:
        """The sequence has got a token."""
        request = sequence.request
        if sequence.last_token_s is not None:
            self.gap.observe(now_s - sequence.last_token_s)
        elif not request.first_token:
            request.first_token = True
            self.first_token.observe(now_s - request.arrived_s)
        sequence.last_token_s = now_s

    def ended(self, request: Request, now_s: float) -> None:
        """All its choices have ended, not by an abort."""
        self.end_to_end.observe(now_s - request.arrived_s)

    def snapshot(self) -> Mapping[str, HistogramCounts]:
        """By the names in `ABOUT`."""
        histograms = (self.first_token, self.gap, self.end_to_end, self.queue)
        return {name: one.snapshot() for name, one in zip(ABOUT, histograms, strict=True)}
