"""What a worker says of its load, and for how long that is worth anything."""

from collections import deque
from dataclasses import dataclass

from radixgate.fleet.relative_speed import ComparableSteps
from radixgate.proto.generated import worker_pb2 as pb

# Older news is worse than none: from then on only our own counts are used.
REPORT_MAX_AGE_S = 2.0

# The speed is that of the last busy second; a second of less than this says too little.
_BUSY_US = 1_000_000
_LEAST_BUSY_US = 10_000
_MAX_SAMPLES = 64


@dataclass(frozen=True, slots=True)
class LoadReport:
    """One report, as in `worker.proto`."""

    running: int
    waiting: int
    queued_uncached_tokens: int  # prompt tokens still to be computed, of all gateways
    queued_uncached_tokens_yours: int  # of this gateway
    kv_tokens_used: int  # locked by running requests
    kv_tokens_evictable: int
    kv_tokens_total: int
    prefill_tokens_total: int
    prefill_busy_us_total: int
    decode_step_s: float | None = None  # None: no step has decoded yet
    paused: bool = False
    phase: str = "serving"
    weight_version: str = ""
    instance_id: str = ""
    # Of our leases those up to this number are in its figures; None: it does not tell.
    seen_number: int | None = None


def report_from_pb(message: pb.LoadReport) -> LoadReport:
    """The report of a message."""
    return LoadReport(
        running=message.running,
        waiting=message.waiting,
        queued_uncached_tokens=message.queued_uncached_tokens,
        queued_uncached_tokens_yours=message.queued_uncached_tokens_yours,
        kv_tokens_used=message.kv_tokens_used,
        kv_tokens_evictable=message.kv_tokens_evictable,
        kv_tokens_total=message.kv_tokens_total,
        prefill_tokens_total=message.prefill_tokens_total,
        prefill_busy_us_total=message.prefill_busy_us_total,
        decode_step_s=message.decode_step_s if message.HasField("decode_step_s") else None,
        paused=message.paused,
        phase=message.phase,
        weight_version=message.weight_version,
        instance_id=message.instance_id,
        seen_number=message.seen_number if message.HasField("seen_number") else None,
    )


class PrefillSpeed:
    """Prompt tokens computed a second, from the running totals of a worker's reports."""

    def __init__(self) -> None:
        self.tokens_per_s: float | None = None  # None: not enough was computed since it first said
        self.steps = ComparableSteps()
        self._instance_id = ""
        # (busy microseconds, tokens), both totals; at most _MAX_SAMPLES.
        self._samples: deque[tuple[int, int]] = deque(maxlen=_MAX_SAMPLES)

    def add(self, report: LoadReport, now: float) -> None:
        """A worker that began anew is measured anew. O(1) on average."""
        busy_us, tokens = report.prefill_busy_us_total, report.prefill_tokens_total
        samples = self._samples
        restarted = bool(samples) and (busy_us < samples[-1][0] or tokens < samples[-1][1])
        if restarted or report.instance_id != self._instance_id:
            samples.clear()
            self.steps.clear()
            self._instance_id = report.instance_id
        if not samples:
            samples.append((busy_us, tokens))
        elif busy_us > samples[-1][0]:
            busy_then, tokens_then = samples[-1]
            self.steps.add(tokens - tokens_then, busy_us - busy_then, report.running, now)
            samples.append((busy_us, tokens))
        while len(samples) > 2 and busy_us - samples[1][0] >= _BUSY_US:
            samples.popleft()
        self.tokens_per_s = self._measure()

    def _measure(self) -> float | None:
        if len(self._samples) < 2:
            return None
        (busy_then, tokens_then), (busy_now, tokens_now) = self._samples[0], self._samples[-1]
        busy_us, tokens = busy_now - busy_then, tokens_now - tokens_then
        return tokens * 1e6 / busy_us if busy_us >= _LEAST_BUSY_US and tokens else None
