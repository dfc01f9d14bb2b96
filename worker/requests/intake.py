"""A Submit is checked and becomes a request, or an error that names the field."""

import random
from array import array
from collections.abc import Callable, Sequence

from radixgate.clock import Clock
from radixgate.errors import RequestError
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.sampling import MAX_CHOICES, SamplingParams
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.cache.radix_node import TOKEN_BYTES, Namespace
from radixgate.worker.requests.limits import WorkerLimits
from radixgate.worker.requests.logits import LogitsProcessor
from radixgate.worker.requests.outbox import Sink
from radixgate.worker.requests.output import OutputText
from radixgate.worker.requests.sequence import Request, TokenSequence

# Makes the chain of one choice; called once for each, as links may keep state.
ProcessorFactory = Callable[[SamplingParams, frozenset[int]], Sequence[LogitsProcessor]]


class Intake:
    """Turns a Submit into a Request with its sequences; no state but a running number.

    The length rule: a prompt must leave room for one token of output (for none with max_tokens
    0), else it is refused; an output that would go beyond the context, or beyond the pool, ends
    there with reason LENGTH. `max_tokens` counts prior output.
    """

    def __init__(
        self,
        limits: WorkerLimits,
        tokenizer: Tokenizer | None,
        processors: ProcessorFactory,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """Without a tokenizer outputs have no text and no end-of-sequence token."""
        self._limits = limits
        self._tokenizer = tokenizer
        self._processors = processors
        self._clock = clock
        self._rng = rng
        self._requests = 0

    def request(self, sink: Sink, submit: pb.Submit) -> Request:
        """Raises RequestError. O(prompt tokens)."""
        if submit.HasField("adapter"):
            raise RequestError("adapters are not supported yet", param="adapter")
        sampling = SamplingParams.from_wire(submit.sampling)
        prompt = self._ids(submit.input_ids, "input_ids")
        prior = self._ids(submit.prior_output_ids, "prior_output_ids")
        if prior and sampling.n > 1:
            raise RequestError(
                f"prior output continues one choice, and n is {sampling.n}", param="n"
            )
        if submit.first_choice + sampling.n > MAX_CHOICES:
            raise RequestError(
                f"choices are numbered below {MAX_CHOICES}, and {sampling.n} from"
                f" {submit.first_choice} on are asked for",
                param="first_choice",
            )
        self._check_length(prompt, sampling)
        self._check_sampling(sampling)
        stop_ids = frozenset(sampling.stop_token_ids)
        if self._tokenizer is not None and not sampling.ignore_eos:
            stop_ids |= self._tokenizer.eos_token_ids
        seed = self._rng.getrandbits(64) if sampling.seed is None else sampling.seed
        now = self._clock.now()
        self._requests += 1
        request = Request(
            rid=submit.rid,
            key=self._requests,
            sink=sink,
            handle=submit.handle,
            number=submit.number if submit.HasField("number") else None,
            sampling=sampling,
            seed=seed,
            namespace=Namespace(salt=submit.salt if submit.HasField("salt") else None),
            prompt_tokens=len(prompt),
            prior_tokens=len(prior),
            max_len=self._max_len(len(prompt), sampling),
            stop_ids=stop_ids,
            priority=submit.priority,
            arrived_s=now,
            deadline_s=now + submit.deadline_s if submit.HasField("deadline_s") else None,
            return_text=not submit.HasField("return_text") or submit.return_text,
            credit=submit.credit,
            unscored=_unscored(sampling, len(prompt), len(prior)),
        )
        request.sequences = [
            self._sequence(request, choice, prompt + prior)
            for choice in range(submit.first_choice, submit.first_choice + sampling.n)
        ]
        return request

    def _sequence(self, request: Request, choice: int, ids: "array[int]") -> TokenSequence:
        sampling = request.sampling
        output = OutputText(
            self._tokenizer, sampling, request.stop_ids, return_text=request.return_text
        )
        processors = self._processors(sampling, request.stop_ids)
        return TokenSequence(request, choice, ids, output, processors)

    def _ids(self, packed: bytes, field: str) -> "array[int]":
        if len(packed) % TOKEN_BYTES:
            raise RequestError(
                f"{field} has {len(packed)} bytes, not {TOKEN_BYTES} a token", param=field
            )
        ids = array("I", packed)
        if ids and max(ids) >= self._limits.vocab_size:
            raise RequestError(
                f"{field} has token {max(ids)}, the vocabulary ends at"
                f" {self._limits.vocab_size - 1}",
                param=field,
            )
        return ids

    def _check_length(self, prompt: "array[int]", sampling: SamplingParams) -> None:
        if not prompt:
            raise RequestError("the prompt has no tokens", param="input_ids")
        room = 0 if sampling.max_tokens == 0 else 1
        limits = self._limits
        if len(prompt) + room > limits.context_length:
            raise RequestError(
                f"the prompt has {len(prompt)} tokens, and with {room} of output that is over the"
                f" context length of {limits.context_length}",
                param="input_ids",
                code="context_length_exceeded",
            )
        if len(prompt) + room > limits.pool_tokens:
            raise RequestError(
                f"the prompt has {len(prompt)} tokens, and with {room} of output that can never"
                f" fit into the KV pool of {limits.pool_tokens} tokens (--max-total-tokens)",
                param="input_ids",
            )

    def _check_sampling(self, sampling: SamplingParams) -> None:
        if sampling.stop and self._tokenizer is None:
            raise RequestError("without a tokenizer there are no stop strings", param="stop")
        named = {
            "logit_bias": sampling.logit_bias,
            "stop_token_ids": sampling.stop_token_ids,
            "token_ids_logprob": sampling.token_ids_logprob,
        }
        for field, tokens in named.items():
            beyond = [token for token in tokens if token >= self._limits.vocab_size]
            if beyond:
                raise RequestError(
                    f"{field} names token {beyond[0]}, the vocabulary ends at"
                    f" {self._limits.vocab_size - 1}",
                    param=field,
                )

    def _max_len(self, prompt_tokens: int, sampling: SamplingParams) -> int:
        if sampling.max_tokens is None:
            return self._limits.longest
        return min(prompt_tokens + sampling.max_tokens, self._limits.longest)


def _unscored(sampling: SamplingParams, prompt_tokens: int, prior_tokens: int) -> int:
    if sampling.logprob_start is None or prior_tokens:
        return prompt_tokens
    return min(sampling.logprob_start, prompt_tokens)
