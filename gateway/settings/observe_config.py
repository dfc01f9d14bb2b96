"""What a gateway writes down of its requests, and to whom it tells them."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError

_TRACES_PATH = "/v1/traces"


@dataclass(frozen=True, slots=True)
class ObserveConfig:
    """All of it is off unless it is given. SIGHUP reopens the files, so that they can be moved."""

    decision_log: str | None = knob(
        None,
        help="file of JSON lines: each choice, what it rested on, and how it went, for radixgate "
        "replay; holds no prompt",
    )
    request_log: str | None = knob(
        None,
        help="file of one JSON line a request: id, outcome, worker, status, tokens, times; `-` is "
        "standard error; holds no prompt",
    )
    otlp_traces_endpoint: str | None = knob(
        None,
        help="collector that takes OpenTelemetry's traces over HTTP, as http://127.0.0.1:4318; "
        "needs the extra otel",
    )
    trace_sample_ratio: float = knob(
        1.0, help="share of the requests that are traced, where the caller has not decided (0..1)"
    )

    def __post_init__(self) -> None:
        if not 0.0 <= self.trace_sample_ratio <= 1.0:
            raise ConfigError(
                f"trace_sample_ratio is {self.trace_sample_ratio:g}, a share is from 0 to 1"
            )
        for name in ("decision_log", "request_log", "otlp_traces_endpoint"):
            if getattr(self, name) == "":
                raise ConfigError(f"{name} is empty: leave it out, or name a place")
        if self.decision_log is not None and self.decision_log == self.request_log:
            raise ConfigError(f"decision_log and request_log are both {self.decision_log}")
        if self.otlp_traces_endpoint is not None:
            self._check_endpoint(self.otlp_traces_endpoint)

    @property
    def traces_url(self) -> str | None:
        """The endpoint, with OTLP's path where it names none; None: nothing is traced."""
        endpoint = self.otlp_traces_endpoint
        if endpoint is None or urlsplit(endpoint).path.strip("/"):
            return endpoint
        return endpoint.rstrip("/") + _TRACES_PATH

    def _check_endpoint(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"otlp_traces_endpoint is {endpoint!r:.100}: give http://host:port of a collector"
            )
