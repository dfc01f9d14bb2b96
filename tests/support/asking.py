"""A Submit in one line."""

from array import array
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from radixgate.proto.generated import worker_pb2 as pb

PLENTY = 1_000_000  # credit


class Asked(TypedDict, total=False):
    """What a request may say beside its prompt; what is left out is left out of the message."""

    rid: str
    number: int
    prior: Sequence[int]
    credit: int  # PLENTY
    salt: str | None
    adapter: str | None
    priority: int | None
    deadline_s: float | None
    return_text: bool | None
    first_choice: int
    temperature: float | None  # 0: greedy
    top_p: float
    top_k: int
    min_p: float
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    logit_bias: Mapping[int, float]
    seed: int
    n: int
    max_tokens: int
    min_tokens: int
    stop: Sequence[str]
    stop_token_ids: Sequence[int]
    ignore_eos: bool
    skip_special_tokens: bool
    no_stop_trim: bool
    top_logprobs: int
    logprob_start: int
    token_ids_logprob: Sequence[int]


_OF_SUBMIT = (
    "return_text",
    "first_choice",
    "rid",
    "number",
    "credit",
    "salt",
    "adapter",
    "priority",
    "deadline_s",
)


def submit(handle: int, ids: Sequence[int], **asked: Unpack[Asked]) -> pb.Submit:
    """Greedy, and with plenty of credit, unless it says otherwise."""
    fields: dict[str, object] = {"credit": PLENTY, "temperature": 0.0, **asked}
    prior = asked.get("prior", ())
    fields.pop("prior", None)
    own = {name: fields.pop(name) for name in _OF_SUBMIT if name in fields}
    made = pb.Submit(
        handle=handle,
        input_ids=array("I", ids).tobytes(),
        prior_output_ids=array("I", prior).tobytes(),
    )
    for name, value in own.items():
        if value is not None:
            setattr(made, name, value)
    for name, value in fields.items():
        if name == "logit_bias":
            made.sampling.logit_bias.update(asked["logit_bias"])
        elif name in ("stop", "stop_token_ids", "token_ids_logprob"):
            getattr(made.sampling, name).extend(value)
        elif value is not None:
            setattr(made.sampling, name, value)
    return made
