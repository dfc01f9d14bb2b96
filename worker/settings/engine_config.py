"""The engine's settings, under SGLang's names and with SGLang's meaning."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError

SCHEDULE_POLICIES = ("fcfs", "lpm", "dfs-weight", "lof", "random", "priority")
ATTENTION_BACKENDS = ("auto", "torch", "cpu", "triton")
KV_CACHE_DTYPES = ("auto", "fp32", "fp16", "int8")
WEIGHTS = ("fp32", "q4")
EVICTION_POLICIES = ("lru", "lfu", "slru", "fifo", "mru", "filo", "priority")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What the engine is started with. Raises ConfigError for values that cannot work."""

    model_path: str = knob(
        "smollm2", help="`smollm2` (embedded), `toy`, a GGUF file, or a Hugging Face folder"
    )
    context_length: int | None = knob(
        None, help="longest prompt and output together; the model's own if not given", unit="tokens"
    )
    page_size: int = knob(16, help="the cache keeps and shares whole pages", unit="tokens")
    max_total_tokens: int | None = knob(
        None, help="size of the KV pool; worked out from the memory if not given", unit="tokens"
    )
    mem_fraction_static: float | None = knob(
        None,
        help="share of the available memory the KV pool may take; if not given, half of it but no"
        " more than 1 GiB",
    )
    chunked_prefill_size: int = knob(
        512,
        help="prompt tokens computed in one step, decoding rows included; -1: prompts whole",
        unit="tokens",
    )
    itl_slo: float | None = knob(
        None,
        help="inter-token latency to keep while prompts are computed: chunks get as large as"
        " measured step times allow, at most --chunked-prefill-size. Steps aim below it by what the"
        " longest of late stood out of those around, a tenth at least. Where step times leave no"
        " room, chunks are so large that a step takes a quarter longer; if not given, they always"
        " have that size",
        unit="ms",
    )
    max_prefill_tokens: int = knob(
        16384, help="prompt tokens of one step with chunking off", unit="tokens"
    )
    max_running_requests: int = knob(64, help="outputs being computed at once")
    max_queued_requests: int = knob(
        4096, help="outputs that may wait; beyond it a request is refused with 503"
    )
    schedule_policy: str = knob(
        "fcfs",
        help="who of those waiting comes next, after the requests' own priority: first come"
        " (`fcfs`, `priority`), longest cached prefix (`lpm`), heaviest branch of the cache"
        " (`dfs-weight`), longest output (`lof`), or by lot (`random`)",
        choices=SCHEDULE_POLICIES,
    )
    schedule_conservativeness: float = knob(
        1.0,
        help="how much room for the output of running requests is kept free when another is"
        " admitted; 0: none, and requests are retracted more often",
    )
    disable_overlap_schedule: bool = knob(
        False,
        help="plan a step only when the one before it is computed and its tokens are out; by"
        " default both is done while the model computes, and the answers are the same",
    )
    max_passed_over: int = knob(
        64, help="how often a waiting request may be passed over by later ones"
    )
    disable_radix_cache: bool = knob(False, help="keep no prefix; every prompt is computed whole")
    radix_eviction_policy: str = knob(
        "lru",
        help="which cached prefix goes first: least recently used (`lru`), least often (`lfu`),"
        " used by one request only (`slru`), oldest (`fifo`), most recently used (`mru`), newest"
        " (`filo`), or of the lowest request priority (`priority`)",
        choices=EVICTION_POLICIES,
    )
    stream_interval: int = knob(
        1,
        help="tokens of an output that go out together; its first token goes at once",
        unit="tokens",
    )
    random_seed: int | None = knob(
        None, help="makes the draws of requests without a seed repeatable; drawn if not given"
    )
    threads: int | None = knob(
        None, help="threads of the forward pass; all cores but one if not given"
    )
    device: str = knob("cpu", help="where weights and KV live")
    attention_backend: str = knob(
        "auto",
        help="what computes: kernels compiled for this processor on first use (`cpu`), torch"
        " operations on any device (`torch`), or `triton` on a GPU; auto: `cpu` where there is a"
        " compiler, otherwise `torch`",
        choices=ATTENTION_BACKENDS,
    )
    kv_cache_dtype: str = knob(
        "auto",
        help="form of the KV cache; int8 has a scale for each token and head; auto: fp16"
        " with the backend `cpu`, otherwise fp32",
        choices=KV_CACHE_DTYPES,
    )
    weights: str = knob(
        "fp32",
        help="form of the weights that is multiplied; `q4`: the blocks of a GGUF file in Q4_0,"
        " Q4_1 or Q8_0 as they are, and what they multiply rounded to 8 bits",
        choices=WEIGHTS,
    )
    weight_version: str = knob("default", help="name of the weights in replies")
    debug_checks: bool = knob(
        False, help="check every data structure when idle (slow); the page counts always are"
    )

    def __post_init__(self) -> None:
        for name in (
            "page_size",
            "max_prefill_tokens",
            "max_running_requests",
            "stream_interval",
        ):
            self._at_least(name, 1)
        for name in ("context_length", "threads"):
            if getattr(self, name) is not None:
                self._at_least(name, 1)
        for name in ("max_queued_requests", "max_passed_over", "schedule_conservativeness"):
            self._at_least(name, 0)
        if self.max_total_tokens is not None:
            self._at_least("max_total_tokens", self.page_size)
        if self.chunked_prefill_size != -1 and self.chunked_prefill_size < self.page_size:
            raise ConfigError(
                f"chunked_prefill_size {self.chunked_prefill_size} is below page_size"
                f" {self.page_size}: a chunk is at least one page, or -1 for no chunking",
                param="chunked_prefill_size",
            )
        if self.itl_slo is not None and self.itl_slo <= 0.0:
            raise ConfigError(f"itl_slo is {self.itl_slo:g} ms, it must be over 0", param="itl_slo")
        if self.itl_slo is not None and self.chunked_prefill_size == -1:
            raise ConfigError(
                "itl_slo sizes the chunks of prompts, and chunked_prefill_size -1 computes prompts"
                " whole: leave one of the two away",
                param="itl_slo",
            )
        if self.mem_fraction_static is not None and not 0.0 < self.mem_fraction_static < 1.0:
            raise ConfigError(
                f"mem_fraction_static is {self.mem_fraction_static}, it must be between 0 and 1",
                param="mem_fraction_static",
            )
        self._one_of("attention_backend", ATTENTION_BACKENDS)
        self._one_of("kv_cache_dtype", KV_CACHE_DTYPES)
        self._one_of("weights", WEIGHTS)
        self._one_of("schedule_policy", SCHEDULE_POLICIES)
        self._one_of("radix_eviction_policy", EVICTION_POLICIES)

    def _at_least(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if value < least:
            raise ConfigError(f"{name} is {value}, it must be at least {least}", param=name)

    def _one_of(self, name: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise ConfigError(
                f"{name} {value!r} is not supported, only {', '.join(choices)}", param=name
            )
