"""What `radixgate bench` can be told: SGLang's names and meanings, and a few of our own."""

import math
from dataclasses import dataclass

from radixgate.analysis.slo import LatencyBounds, slo_of
from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_port
from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ARRIVALS
from radixgate.loadgen.server_url import check_url

BACKENDS = (
    "radixgate",
    "sglang",
    "sglang-native",
    "sglang-oai",
    "sglang-oai-chat",
    "vllm",
    "vllm-chat",
    "openai",
    "openai-chat",
)
DATASET_NAMES = (
    *("random", "random-ids", "generated-shared-prefix", "custom", "sharegpt"),
    *("rag", "mooncake", "agentic", "grpo"),
)
# Where the servers of each kind listen unless told otherwise.
_SGLANG_PORT = 30000
_OTHER_PORT = 8000


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """One measurement: which server, which requests, at which times, and what is written."""

    backend: str = knob(
        "radixgate",
        help="what is asked and how: radixgate and sglang post to /generate, names ending in chat "
        "to /v1/chat/completions, the others to /v1/completions",
        choices=BACKENDS,
    )
    base_url: str | None = knob(None, help="server; none: http://HOST:PORT")
    host: str = knob("127.0.0.1", help="server's address")
    port: int | None = knob(None, help="server's port; none: 30000 for sglang, 8000 for the others")
    model: str | None = knob(
        None,
        help="model named in the requests; none: the first of /v1/models, and none to /generate",
        flags=("--served-model-name",),
    )
    header: tuple[str, ...] = knob((), help="further request headers, each Name=Value")
    send_session: bool = knob(
        False,
        help="name the session in each body (session_id), for policies that keep sessions together",
        flags=("--gsp-send-routing-key",),
    )
    extra_request_body: str | None = knob(
        None, help="JSON object merged into every body, sampling_params included; none: nothing"
    )

    dataset_name: str = knob("random", help="what is asked", choices=DATASET_NAMES)
    dataset_path: str | None = knob(None, help="file of the custom, sharegpt and mooncake datasets")
    num_prompts: int | None = knob(
        None,
        help="requests (conversations for generated-shared-prefix); none: 1000 for random, 500 "
        "for rag, 200 for agentic, everything the other datasets hold",
    )
    random_input_len: int = knob(1024, help="longest random prompt", unit="tokens")
    random_output_len: int = knob(1024, help="longest random answer", unit="tokens")
    random_range_ratio: float = knob(
        0.0, help="shortest random length as a share of the longest, 0 to 1"
    )
    random_ids_below: int = knob(
        256, help="random-ids are drawn from 32 to this, excluded; at most the vocabulary's size"
    )
    output_len: int | None = knob(
        None,
        help="new tokens for a file that does not say; none: its answer's length (sharegpt), "
        "random_output_len (custom)",
        unit="tokens",
        flags=("--sharegpt-output-len",),
    )
    sharegpt_context_len: int | None = knob(
        None, help="longer conversations are passed over; none: none are", unit="tokens"
    )
    gsp_num_groups: int = knob(64, help="shared prefixes")
    gsp_prompts_per_group: int = knob(16, help="prompts per shared prefix, on average under zipf")
    gsp_system_prompt_len: int = knob(2048, help="shared prefix", unit="tokens")
    gsp_question_len: int = knob(128, help="question after it", unit="tokens")
    gsp_output_len: int = knob(256, help="answer", unit="tokens")
    gsp_ordered: bool = knob(False, help="group after group instead of mixed")
    gsp_group_distribution: str = knob(
        "uniform", help="how often each group is asked", choices=("uniform", "zipf")
    )
    gsp_zipf_alpha: float = knob(1.0, help="under zipf the g-th group has weight 1 / g ** this")

    request_rate: float = knob(
        math.inf, help="sessions begun per second, each a request or a conversation; inf: at once"
    )
    arrival: str = knob(
        "poisson",
        help="spacing at a finite rate; trace: the dataset's times, whatever the rate; rl-step: "
        "all of a step at once, the next when it is over",
        choices=ARRIVALS,
    )
    use_trace_timestamps: bool = knob(False, help="the same as --arrival trace")
    max_concurrency: int | None = knob(
        None, help="requests in flight at most (a closed loop); none: no bound (an open loop)"
    )
    seed: int = knob(1, help="of lengths, words, groups and times; also sent for sampling")
    temperature: float = knob(0.0, help="of sampling; 0 is greedy")
    disable_ignore_eos: bool = knob(
        False, help="let answers end early; else each is exactly as long as planned"
    )

    warmup_requests: int = knob(1, help="requests before the measurement, with their own prompts")
    flush_cache: bool = knob(False, help="POST /flush_cache between warm-up and measurement")
    idle_timeout_s: float = knob(600.0, help="silence after which a request fails", unit="s")
    request_timeout_s: float | None = knob(
        None, help="whole time after which a request fails; none: never", unit="s"
    )

    output_file: str | None = knob(None, help="append one JSON line of results; none: do not")
    output_details: bool = knob(False, help="that line also holds the figures of each request")
    schedule_file: str | None = knob(None, help="write the schedule there; none: do not")
    schedule_from: str | None = knob(
        None, help="play this schedule, written before, instead of making one; none: make one"
    )
    tag: str | None = knob(None, help="free text in the result line; none: nothing")
    output_folder: str | None = knob(
        None, help="folder for run.json, requests.jsonl, fleet.jsonl and the reports; none: none"
    )
    processes: int = knob(1, help="processes of the client; sessions are dealt out to them")
    settle_s: float = knob(0.0, help="calm between warm-up and measurement", unit="s")
    fleet_poll_s: float = knob(
        0.5, help="how often a gateway's /workers is read during the run; 0: never", unit="s"
    )
    goodput: tuple[str, ...] = knob(
        (),
        help="objective that a good request keeps, in ms: ttft:500 e2e:5000 (both from the "
        "intended time, in a closed loop from the dispatch) tpot:50 itl_p99:100",
    )
    disable_tqdm: bool = knob(False, help="no progress")

    def __post_init__(self) -> None:
        for name in _AT_LEAST_ONE:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{_flag(name)} must be at least 1, not {value}")
        if self.warmup_requests < 0:
            raise ConfigError(f"--warmup-requests must not be negative: {self.warmup_requests}")
        if not self.request_rate > 0:
            raise ConfigError(
                f"--request-rate must be over 0 (inf sends all at once), not {self.request_rate:g}"
            )
        if not 0.0 <= self.random_range_ratio <= 1.0:
            raise ConfigError(
                f"--random-range-ratio must be from 0 to 1, not {self.random_range_ratio:g}"
            )
        if self.random_ids_below <= 32:
            raise ConfigError(f"--random-ids-below must be over 32, not {self.random_ids_below}")
        for name in ("idle_timeout_s", "request_timeout_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{_flag(name)} must be over 0, not {value:g}")
        for name in ("settle_s", "fleet_poll_s"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{_flag(name)} must not be negative: {getattr(self, name):g}")
        if self.base_url is not None:
            check_url("--base-url", self.base_url)
        check_port("--port", self.port or 0)
        slo_of(self.goodput)  # wrong words are refused at once
        if self.max_concurrency is not None and self.processes > self.max_concurrency:
            raise ConfigError(
                f"--processes {self.processes} is over --max-concurrency {self.max_concurrency}: "
                "a process without a place would never send"
            )
        if self.arrives == "rl-step" and self.processes > 1:
            raise ConfigError("--arrival rl-step needs --processes 1: a step ends for all at once")
        for place, item in enumerate(self.header, 1):
            if item.find("=") < 1:  # not printed: it may be a key
                raise ConfigError(f"--header must be Name=Value; number {place} is not")

    @property
    def url(self) -> str:
        """The server, without a slash at the end."""
        if self.base_url is not None:
            return self.base_url.rstrip("/")
        port = self.port
        if port is None:
            port = _SGLANG_PORT if self.backend.startswith("sglang") else _OTHER_PORT
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}"

    @property
    def open_loop(self) -> bool:
        """The requests have intended times of their own."""
        if self.schedule_from is not None or self.arrives == "trace":
            return True
        return self.arrives != "rl-step" and math.isfinite(self.request_rate)

    @property
    def objective(self) -> LatencyBounds | None:
        """What --goodput asks; None: nothing."""
        return slo_of(self.goodput, open_loop=self.open_loop)

    @property
    def arrives(self) -> str:
        """The kind of arrival that holds."""
        return "trace" if self.use_trace_timestamps else self.arrival

    def prompts_or(self, default: int) -> int:
        return default if self.num_prompts is None else self.num_prompts


_AT_LEAST_ONE = (
    "num_prompts",
    "random_input_len",
    "random_output_len",
    "output_len",
    "sharegpt_context_len",
    "gsp_num_groups",
    "gsp_prompts_per_group",
    "gsp_system_prompt_len",
    "gsp_question_len",
    "gsp_output_len",
    "max_concurrency",
    "processes",
)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
