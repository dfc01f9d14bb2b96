"""SGLang's `/generate`: what a request may say."""

from array import array
from collections.abc import Mapping, Sequence

from radixgate.errors import RequestError
from radixgate.proto import native_answer
from radixgate.proto.fields import Fields, as_token_ids, kind_of
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import GenerationRequest, Prompt
from radixgate.proto.openai import MAX_PROMPTS, IdsPrompt, TextPrompt
from radixgate.proto.sampling_fields import native_sampling, top_logprobs
from radixgate.proto.unsupported import NATIVE, refuse_unsupported


def parse_generate(body: Mapping[str, object]) -> GenerationRequest:
    """The body of `/generate`: `text` or `input_ids`, one or a batch.

    Raises RequestError naming the field at fault.
    """
    fields = Fields(body)
    refuse_unsupported(fields, NATIVE)
    prompts, batch = _prompts(fields)
    params = fields.raw("sampling_params")
    if isinstance(params, list):
        raise fields.refuse("sampling_params", "as an array is not supported yet: one for all")
    sampling = native_sampling(fields.inner("sampling_params"))
    _read_logprobs(fields, sampling)
    stream = fields.flag("stream") or False
    choices = sampling.n or 1
    return GenerationRequest(
        prompts=prompts,
        sampling=sampling,
        stream=stream,
        renderer=native_answer.renderer(
            stream=stream,
            batch=batch or choices > 1,
            choices=choices,
            text_in_logprobs=fields.flag("return_text_in_logprobs") or False,
        ),
        model=fields.text("model"),
        rids=_rids(fields, len(prompts)),
        salt=fields.text("cache_salt") or fields.text("extra_key"),
        priority=fields.priority(),
        session=fields.text("session_id") or fields.text("routing_key"),
    )


def _prompts(fields: Fields) -> tuple[Sequence[Prompt], bool]:
    """The prompts, and whether they came as a batch (the answer is then an array)."""
    text, ids = fields.raw("text"), fields.raw("input_ids")
    if (text is None) == (ids is None):
        raise RequestError("give either text or input_ids", param="text")
    if isinstance(text, str):
        return (TextPrompt(text, "text"),), False
    if text is not None:
        texts = fields.strings("text")
        return _bounded([TextPrompt(item, "text") for item in texts or ()], "text"), True
    if isinstance(ids, array):  # many are read into one
        return (IdsPrompt(ids, "input_ids"),), False
    if not isinstance(ids, list):
        raise fields.wrong("input_ids", "an array of token ids, or an array of such arrays")
    if not ids:
        raise RequestError("input_ids is empty", param="input_ids")
    if not isinstance(ids[0], list):
        return (IdsPrompt(as_token_ids(ids, "input_ids"), "input_ids"),), False
    return _bounded(
        [IdsPrompt(_row(row, place), "input_ids") for place, row in enumerate(ids)], "input_ids"
    ), True


def _row(row: object, place: int) -> "array[int]":
    where = f"input_ids[{place}]"
    if not isinstance(row, list):
        raise RequestError(
            f"{where} must be an array of token ids, not {kind_of(row)}", param=where
        )
    return as_token_ids(row, where)


def _bounded(prompts: Sequence[Prompt], where: str) -> Sequence[Prompt]:
    if not 1 <= len(prompts) <= MAX_PROMPTS:
        raise RequestError(
            f"{where} must hold 1 to {MAX_PROMPTS} prompts, not {len(prompts)}", param=where
        )
    return prompts


def _read_logprobs(fields: Fields, sampling: pb.Sampling) -> None:
    top = top_logprobs(fields, "top_logprobs_num") or 0
    start = fields.integer("logprob_start_len")
    ids = fields.token_ids("token_ids_logprob") or ()
    if not fields.flag("return_logprob"):
        return
    sampling.top_logprobs = top
    if start is not None and start >= 0:  # -1, the default: of the output only
        sampling.logprob_start = min(start, 2**32 - 1)
    sampling.token_ids_logprob.extend(ids)


def _rids(fields: Fields, prompts: int) -> Sequence[str]:
    rids = fields.strings("rid")
    if rids is None or rids == [""]:  # which names nobody
        return ()
    if len(rids) != prompts:
        raise RequestError(f"{len(rids)} rids for {prompts} prompts", param="rid")
    if len(set(rids)) != len(rids):
        raise RequestError("the rids of one batch must differ", param="rid")
    return tuple(rids)
