"""The gateway's settings, with the names that users of SGLang's router know."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_port
from radixgate.errors import ConfigError
from radixgate.policies.registry import DEFAULT_POLICY, POLICIES

_MUST_BE_OVER_ZERO = (
    "processes",
    "max_payload_size",
    "request_timeout_secs",
    "stream_idle_timeout_secs",
    "worker_connect_timeout_secs",
    "health_check_interval_secs",
    "health_check_timeout_secs",
    "health_failure_threshold",
    "health_success_threshold",
)
_MUST_NOT_BE_NEGATIVE = (
    "worker_idle_connections",
    "worker_idle_timeout_secs",
    "retry_max_retries",
    "retry_initial_backoff_ms",
    "retry_max_backoff_ms",
    "shutdown_accept_secs",
    "shutdown_grace_period_secs",
    "worker_startup_timeout_secs",
)

# More than any machine has cores for: it is a number that was meant for something else.
MOST_PROCESSES = 256


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """Knobs of `radixgate gateway`; those of a policy stand beside the policy."""

    host: str = knob("127.0.0.1", help="address to listen on")
    port: int = knob(8000, help="port to listen on; 0 takes a free one and the ready line names it")
    processes: int = knob(
        1,
        help="processes that answer on the port, each on a core of its own; limits hold for all of"
        " them together",
    )
    row_writes: bool = knob(
        True,
        help="what goes to four clients or more at once is handed to the kernel in one call"
        " (io_uring), where it takes it; without, io_uring is not used for it",
    )
    worker_urls: tuple[str, ...] = knob(
        (), help="workers: grpc://host:port (radixgate's own) or http://host:port (any other)"
    )
    workers_file: str | None = knob(
        None, help="YAML file of further workers, each with its url, api_key and labels"
    )
    policy: str = knob(
        DEFAULT_POLICY,
        help=f"how a worker is chosen for a request: {', '.join(POLICIES)}; or by a policy that an "
        "installed package brings",
    )
    max_payload_size: int = knob(
        64 * 1024 * 1024, unit="bytes", help="largest request body; more is refused with 413"
    )

    request_timeout_secs: float = knob(
        1800.0,
        unit="s",
        help="longest wait for the first byte of an answer's body; then another worker is asked",
    )
    stream_idle_timeout_secs: float = knob(
        300.0,
        unit="s",
        help="longest silence of a worker within an answer; a live answer may take any time",
    )
    worker_connect_timeout_secs: float = knob(
        5.0, unit="s", help="longest wait for a connection to a worker"
    )
    worker_idle_connections: int = knob(
        256, help="kept-alive connections a worker while unused; running requests are not limited"
    )
    worker_idle_timeout_secs: float = knob(
        60.0, unit="s", help="how long an unused connection to a worker is kept"
    )

    retry_max_retries: int = knob(
        5, help="further attempts before the first byte has been sent; 0 means one attempt"
    )
    retry_initial_backoff_ms: float = knob(
        50.0, unit="ms", help="wait before the first retry; doubled for each further one"
    )
    retry_max_backoff_ms: float = knob(
        5000.0, unit="ms", help="longest wait between two attempts, before jitter of a fifth"
    )

    health_check_interval_secs: float = knob(
        1.0, unit="s", help="time between two checks of a worker; all are checked in parallel"
    )
    health_check_timeout_secs: float = knob(
        2.0, unit="s", help="a check that takes longer has failed"
    )
    health_failure_threshold: int = knob(
        3, help="failed checks in a row that take a worker down; a refused connection does at once"
    )
    health_success_threshold: int = knob(1, help="good checks in a row that bring a worker back")
    worker_startup_timeout_secs: float = knob(
        600.0,
        unit="s",
        help="how long a worker that was added may load until it says what it serves: meanwhile a "
        "model that nobody serves is 503, and then 404; it is asked on all the same",
    )

    shutdown_accept_secs: float = knob(
        0.0,
        unit="s",
        help="how long after SIGTERM requests are still taken while /readiness says draining: what "
        "a load balancer needs to notice",
    )
    shutdown_grace_period_secs: float = knob(
        30.0,
        unit="s",
        help="how long running answers may go on after that; a second SIGTERM ends at once",
    )
    seed: int | None = knob(
        None,
        help="seed of ties, jitter and of requests that bring no seed; none: drawn from the system",
    )

    def __post_init__(self) -> None:
        check_port("port", self.port)
        if self.processes > MOST_PROCESSES:
            raise ConfigError(f"processes is {self.processes}, it must be at most {MOST_PROCESSES}")
        for name in _MUST_BE_OVER_ZERO:
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name):g}, it must be over 0")
        for name in _MUST_NOT_BE_NEGATIVE:
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name):g}, it cannot be negative")
        if self.retry_initial_backoff_ms > self.retry_max_backoff_ms:
            raise ConfigError(
                f"retry_initial_backoff_ms {self.retry_initial_backoff_ms:g} is over"
                f" retry_max_backoff_ms {self.retry_max_backoff_ms:g}"
            )
