"""Sampling parameters with every default filled in and every range checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from radixgate.errors import RequestError
from radixgate.proto.generated import worker_pb2 as pb

MAX_CHOICES = 128
MAX_TOP_LOGPROBS = 50
MAX_STOPS = 64
# OpenAI's bound. Logits are float32: a bias out of its range would be an infinity in the engine.
MAX_BIAS = 100.0


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the tokens of one request are drawn. Names and defaults are OpenAI's and SGLang's."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1  # -1: all
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None  # None: the worker draws one, so a repetition differs
    n: int = 1
    max_tokens: int | None = None  # None: what is left of the context
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    no_stop_trim: bool = False
    top_logprobs: int | None = None  # None: no logprobs; 0: of the chosen token only
    logprob_start: int | None = None  # None: no prompt logprobs
    token_ids_logprob: tuple[int, ...] = ()

    @classmethod
    def from_wire(cls, wire: pb.Sampling) -> "SamplingParams":
        """Fill in the defaults. Raises RequestError naming the field that is out of range."""
        # What is absent is not looked at: a dictionary of no biases takes as long as all else.
        given = {one.name: value for one, value in wire.ListFields()}
        for name, plain in _PLAIN:
            if name in given:
                given[name] = plain(given[name])
        params = cls(**given)
        params._check_ranges()
        return params

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0 or self.top_k == 1

    def _check_ranges(self) -> None:
        for name, low, high in RANGES:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise RequestError(
                    f"{name} must be from {low:g} to {high:g}, not {value:g}", param=name
                )
        if self.top_p <= 0.0:
            raise RequestError("top_p must be over 0 and at most 1, not 0", param="top_p")
        if self.top_k == 0 or self.top_k < -1:
            raise RequestError(
                f"top_k must be -1 (all) or at least 1, not {self.top_k}", param="top_k"
            )
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise RequestError(
                f"min_tokens {self.min_tokens} is over max_tokens {self.max_tokens}",
                param="min_tokens",
            )
        if len(self.stop) > MAX_STOPS:
            raise RequestError(
                f"at most {MAX_STOPS} stop strings, not {len(self.stop)}", param="stop"
            )
        if "" in self.stop:
            raise RequestError("a stop string is empty", param="stop")
        for token, bias in self.logit_bias.items():
            if not -MAX_BIAS <= bias <= MAX_BIAS:
                raise RequestError(
                    f"logit_bias of token {token} must be from {-MAX_BIAS:g} to {MAX_BIAS:g},"
                    f" not {bias:g}",
                    param="logit_bias",
                )


RANGES: tuple[tuple[str, float, float], ...] = (
    ("temperature", 0.0, 100.0),
    ("top_p", 0.0, 1.0),
    ("min_p", 0.0, 1.0),
    ("presence_penalty", -2.0, 2.0),
    ("frequency_penalty", -2.0, 2.0),
    ("repetition_penalty", 0.01, 100.0),
    ("n", 1, MAX_CHOICES),
    ("max_tokens", 0, 2**31 - 1),
    ("top_logprobs", 0, MAX_TOP_LOGPROBS),
)
# Messages' own kinds of collections, as plain ones.
_PLAIN: tuple[tuple[str, type[dict[int, float]] | type[tuple[str | int, ...]]], ...] = (
    ("logit_bias", dict),
    ("stop", tuple),
    ("stop_token_ids", tuple),
    ("token_ids_logprob", tuple),
)
