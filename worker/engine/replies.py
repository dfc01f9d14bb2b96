"""Items on their way out: what a token, and the end of a choice, look like on the wire."""

from collections.abc import Sequence
from typing import Protocol

from radixgate.clock import Clock
from radixgate.errors import RadixgateError
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.requests.outbox import StepOutbox
from radixgate.worker.requests.output import End
from radixgate.worker.requests.sequence import Request, TokenSequence
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.steps.logprobs import RowLogprobs, ScoredToken
from radixgate.worker.steps.sampler import Draw


class Entries(Protocol):
    """A repeated field of TokenLogprobs."""

    def add(self, *, token_id: int) -> pb.TokenLogprobs: ...


class Replies:
    """Writes items into the outbox. Counts stand on the first and the last item of a choice."""

    def __init__(self, outbox: StepOutbox, clock: Clock, config: EngineConfig) -> None:
        self._outbox = outbox
        self._clock = clock
        self._weight_version = config.weight_version
        self._interval = config.stream_interval

    def token(self, sequence: TokenSequence, draw: Draw, text: str, end: End | None) -> None:
        """The token just appended to the sequence, and the end if it is the last."""
        made, request = sequence.completion_tokens, sequence.request
        if end is None and made > 1 and made % self._interval:
            item = sequence.unsent = sequence.unsent or pb.Item()
        else:
            item = self._item(sequence)
        item.text += text
        item.token_ids.append(draw.token_id)
        if draw.logprobs is not None:
            _add_entry(item.logprobs, draw.token_id, draw.logprobs)
        if end is not None or made == 1:
            self._add_counts(item, sequence)
        if end is not None:
            self._add_end(item, sequence, end)
        if self._interval > 1 and request.credit <= 0:
            # Credit comes for what has gone out: nothing may wait for it.
            for choice in request.sequences:
                if choice.unsent is not None:
                    self._item(choice)

    def scored(self, sequence: TokenSequence, tokens: Sequence[ScoredToken]) -> None:
        """The next tokens of the prompt, in order."""
        item = self._item(sequence)
        for token in tokens:
            _add_entry(item.input_logprobs, token.token_id, token.logprobs)

    def end(self, sequence: TokenSequence, text: str, end: End) -> None:
        """The end of a choice without a token."""
        item = self._item(sequence)
        item.text += text
        self._add_counts(item, sequence)
        self._add_end(item, sequence, end)

    def refuse(self, request: Request, error: RadixgateError) -> None:
        """The answer to a request of which nothing has been said yet."""
        self._outbox.refuse(request.sink, request.handle, error)

    def over(self, request: Request) -> None:
        """Nothing more is said of it."""
        self._outbox.end(request.sink, request.handle)

    def _item(self, sequence: TokenSequence) -> pb.Item:
        """An item that goes out with this step, begun with what has waited."""
        request = sequence.request
        request.heard = True
        item = self._outbox.item(request.sink)
        if sequence.unsent is not None:
            item.MergeFrom(sequence.unsent)
            sequence.unsent = None
        item.handle = request.handle
        item.choice = sequence.choice
        return item

    def _add_counts(self, item: pb.Item, sequence: TokenSequence) -> None:
        request = sequence.request
        counts = item.counts
        counts.prompt = request.prompt_tokens
        # The request's number: a further choice finds the whole prompt, computed for the first.
        counts.cached_device = request.cached_tokens or 0
        counts.completion = sequence.completion_tokens
        counts.retractions = sequence.retractions
        admitted_s = sequence.admitted_s
        if admitted_s is None:
            admitted_s = self._clock.now()
        counts.queue_s = admitted_s - request.arrived_s
        item.weight_version = self._weight_version

    def _add_end(self, item: pb.Item, sequence: TokenSequence, end: End) -> None:
        item.finish.CopyFrom(end.to_wire())
        item.counts.e2e_s = self._clock.now() - sequence.request.arrived_s


def _add_entry(entries: Entries, token_id: int, logprobs: RowLogprobs | None) -> None:
    entry = entries.add(token_id=token_id)
    if logprobs is None:
        return
    entry.logprob = logprobs.chosen
    for token, logprob in logprobs.top:
        entry.top.add(token_id=token, logprob=logprob)
    for token, logprob in logprobs.of_ids:
        entry.of_ids.add(token_id=token, logprob=logprob)
