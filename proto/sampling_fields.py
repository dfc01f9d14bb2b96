"""Sampling parameters as clients write them, in OpenAI's and in SGLang's spelling."""

from collections.abc import Callable, Mapping

from radixgate.errors import RequestError
from radixgate.proto.fields import Fields, is_number
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.sampling import MAX_TOP_LOGPROBS, SamplingParams
from radixgate.proto.unsupported import CONSTRAINTS, refuse_constraints, refuse_unknown

_NUMBERS = (
    "temperature",
    "top_p",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
)
MAX_TOKENS = 2**31 - 1  # more asks for what is left of the context, and so does this
_FLAGS = ("ignore_eos", "skip_special_tokens", "no_stop_trim")
# They change nothing here: only slow tokenizers heed the first, nothing reads parameters of one's
# own, and each token is sent as it comes.
UNHEEDED = ("spaces_between_special_tokens", "custom_params", "stream_interval")
# All that may stand in SGLang's `sampling_params`.
NATIVE_NAMES = frozenset(
    (
        *_NUMBERS,
        *_FLAGS,
        *CONSTRAINTS,
        *UNHEEDED,
        "include_stop_str_in_output",
        "logit_bias",
        "max_new_tokens",
        "min_new_tokens",
        "n",
        "sampling_seed",
        "seed",
        "stop",
        "stop_token_ids",
        "top_k",
    )
)


def openai_sampling(body: Fields, *, max_tokens: int | None, least_tokens: int = 1) -> pb.Sampling:
    """From the top level of an OpenAI body. `max_tokens` counts if the client gives none.

    Raises RequestError naming the field.
    """
    wire = _common(body)
    for name in ("max_tokens", "max_completion_tokens"):  # the second counts where both are given
        given = body.integer(name)
        if given is not None:
            _at_least(body, name, given, least_tokens)
            max_tokens = given
    if max_tokens is not None:
        wire.max_tokens = min(max_tokens, MAX_TOKENS)
    _minimum(body, "min_tokens", wire)
    return checked(wire, body)


def native_sampling(params: Fields) -> pb.Sampling:
    """From SGLang's `sampling_params`; without `max_new_tokens` it is 128, as there. A name that
    is not known is refused, as there."""
    refuse_unknown(params, NATIVE_NAMES)
    wire = _common(params)
    given = params.integer("max_new_tokens")
    if given is not None:
        _at_least(params, "max_new_tokens", given, 0)
    wire.max_tokens = 128 if given is None else min(given, MAX_TOKENS)
    _minimum(params, "min_new_tokens", wire)
    return checked(wire, params, {"max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens"})


def top_logprobs(fields: Fields, name: str) -> int | None:
    """How many of the most likely tokens are to be told with each; None: nothing is said of it."""
    value = fields.integer(name)
    if value is not None and not 0 <= value <= MAX_TOP_LOGPROBS:
        where = fields.path(name)
        raise RequestError(
            f"{where} must be from 0 to {MAX_TOP_LOGPROBS}, not {value}", param=where
        )
    return value


def checked(
    wire: pb.Sampling, fields: Fields, names: Mapping[str, str] | None = None
) -> pb.Sampling:
    """`wire`, once its ranges hold; an error names the field as the client wrote it."""
    try:
        SamplingParams.from_wire(wire)
    except RequestError as error:
        own = error.param or ""
        shown = fields.path((names or {}).get(own, own))
        raise RequestError(error.message.replace(own, shown, 1), param=shown) from error
    return wire


def _common(fields: Fields) -> pb.Sampling:
    refuse_constraints(fields)
    wire = pb.Sampling()
    _copy(fields.number, _NUMBERS, wire)
    _copy(fields.flag, _FLAGS, wire)
    if fields.flag("include_stop_str_in_output"):  # as vLLM calls it
        wire.no_stop_trim = True
    for name, low, high in (("top_k", -(2**31), 2**31 - 1), ("n", 1, 2**32 - 1)):
        value = fields.integer(name)
        if value is not None:
            _at_least(fields, name, value, low)
            setattr(wire, name, min(value, high))
    seed = fields.integer("seed")
    if seed is None:
        seed = fields.integer("sampling_seed")
    if seed is not None:
        wire.seed = seed & (2**64 - 1)  # a negative seed is as good as any
    wire.stop.extend(fields.strings("stop") or ())
    wire.stop_token_ids.extend(fields.token_ids("stop_token_ids") or ())
    for token, bias in _biases(fields):
        wire.logit_bias[token] = bias
    return wire


# Of 32 bits. Python refuses to read some thousands of them, and not as a wrong request.
_MOST_ID_DIGITS = 10


def _copy(read: Callable[[str], object], names: tuple[str, ...], wire: pb.Sampling) -> None:
    for name in names:
        value = read(name)
        if value is not None:
            setattr(wire, name, value)


def _biases(fields: Fields) -> list[tuple[int, float]]:
    where = fields.path("logit_bias")
    biases = []
    for token, bias in (fields.mapping("logit_bias") or {}).items():
        is_id = token.isascii() and token.isdigit() and len(token) <= _MOST_ID_DIGITS
        if not is_id or int(token) >= 2**32:
            raise RequestError(f"{where}: {token!r:.40} is not a token id", param=where)
        if not is_number(bias):
            raise RequestError(f"{where}: the bias of token {token} must be a number", param=where)
        biases.append((int(token), float(str(bias))))
    return biases


def _minimum(fields: Fields, name: str, wire: pb.Sampling) -> None:
    value = fields.integer(name)
    if value is not None:
        _at_least(fields, name, value, 0)
        wire.min_tokens = min(value, MAX_TOKENS)


def _at_least(fields: Fields, name: str, value: int, least: int) -> None:
    if value < least:
        where = fields.path(name)
        raise RequestError(f"{where} must be at least {least}, not {value}", param=where)
