"""What the workers have produced of one answer: it outlives the attempts, so that the next goes on.

Draws are a function of (seed, choice, position) and the text of a choice is one of its ids, so a
worker that is given the ids delivered so far continues a stream as the first would have.
"""

from array import array
from collections.abc import Callable, Sequence
from random import Random

from radixgate.proto.contract import WHOLE_CREDIT
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext, GenerationRequest, Renderer
from radixgate.proto.single_tokens import SingleTokens
from radixgate.proto.usage import UsageSum

# Tokens a worker may emit ahead of a client that reads: enough to hide the way there and back, and
# all that a client which has stopped reading makes the gateway keep.
STREAM_CREDIT = 256


class AnswerProgress:
    """Owned by the exchange, filled by one attempt at a time; no larger than the answer itself."""

    __slots__ = (
        "_brought_before",
        "_context",
        "_generation",
        "_ids",
        "_numbers",
        "_open",
        "_prompts",
        "_renderer",
        "_rids",
        "_scored",
        "_seed",
        "_wants_scores",
        "attempts",
        "ended_by_order",
        "head_sent",
        "usage",
    )

    def __init__(self, generation: GenerationRequest, prompts: "Sequence[array[int]]") -> None:
        self._generation = generation
        self._prompts = prompts
        self._numbers = range(len(prompts))
        self._renderer: Renderer | None = None  # None: no attempt has begun yet
        self._rids = generation.rids  # what the prompts are called, once an attempt has begun
        self._seed = 0
        self.usage = UsageSum()
        choices = range(generation.sampling.n or 1)
        self._open = {(prompt, choice) for prompt in self._numbers for choice in choices}
        self._ids: dict[tuple[int, int], array[int]] = {}  # delivered, by (prompt, choice)
        self._wants_scores = generation.sampling.HasField("logprob_start")
        self._scored = [0] * len(prompts)  # positions of each prompt whose logprobs have come
        self.head_sent = False
        self.attempts = 0
        self._brought_before = 0
        self.ended_by_order = False  # somebody aborted it: no worker goes on from here

    @property
    def begun(self) -> bool:
        """A worker has produced something: only another of ours can go on from it."""
        return bool(self._ids)

    @property
    def brought(self) -> int:
        """Tokens that the attempt under way has added, or the last one had. O(choices)."""
        return self.tokens - self._brought_before

    @property
    def tokens(self) -> int:
        """All that have come. O(choices)."""
        return sum(map(len, self._ids.values()))

    @property
    def complete(self) -> bool:
        return not self._open

    @property
    def renderer(self) -> Renderer:
        assert self._renderer is not None
        return self._renderer

    def open(self, context: AnswerContext, rng: Random) -> None:
        """Before each attempt; only the first one sets anything.

        A request without a seed is given one here, so that any worker continues it alike. The
        prompts are called what the context says, as it is what the client is told.
        """
        self.attempts += 1
        self._brought_before = self.tokens
        if self._renderer is not None:
            return
        self._renderer = self._generation.renderer(context)
        self._rids = self._generation.rids or context.rids
        sampling = self._generation.sampling
        self._seed = sampling.seed if sampling.HasField("seed") else rng.getrandbits(63)

    def submits(self, new_rid: Callable[[], str]) -> list[tuple[int, str, pb.Submit]]:
        """What is left to generate: prompt number, its rid as the client knows it, and the `Submit`
        without its handle. A choice that has begun goes on alone, by its number."""
        submits = []
        choices = self._generation.sampling.n or 1
        # Where nothing has come, all are open.
        prompts = sorted({prompt for prompt, _ in self._open}) if self._ids else self._numbers
        for prompt in prompts:
            rid = there = self._rids[prompt] if self._rids else new_rid()
            if self.attempts > 1 and not self._generation.rids:
                there = new_rid()  # the worker may have the first one yet
            if not self._ids or not any((prompt, one) in self._ids for one in range(choices)):
                submits.append((prompt, rid, self._submit(prompt, there)))
                continue
            for choice in range(choices):
                if (prompt, choice) in self._open:
                    alone = self._submit(prompt, there if choices == 1 else new_rid())
                    alone.sampling.n = 1
                    alone.first_choice = choice
                    alone.prior_output_ids = self._delivered(prompt, choice).tobytes()
                    submits.append((prompt, rid, alone))
        return submits

    def take(self, prompt: int, item: pb.Item, prior: int) -> bytes:
        """Note an item and render it. `prior` tokens of its choice came before this attempt."""
        key = prompt, item.choice
        ids = self._ids.get(key)
        if ids is None:
            ids = self._ids[key] = array("I")
        fresh = item.token_ids
        if len(fresh) == 1:
            ids.append(fresh[0])  # as a rule; in half the time
        else:
            ids.extend(fresh)
        if self._wants_scores and item.choice == 0:
            self._scored[prompt] += len(item.input_logprobs)
        if item.HasField("counts"):
            item.counts.completion += prior
            self.usage.add(prompt, item)
        if item.HasField("finish"):
            self._open.discard(key)
        return self.renderer.item(prompt, item)

    def tokens_of(self, prompt: int) -> "tuple[array[int], SingleTokens]":
        """`take` in two parts for items that bring one token of choice 0 with its text and nothing
        else: append the token's id, then ask for its event."""
        return self._ids.setdefault((prompt, 0), array("I")), self.renderer.token_of(prompt)

    def end_aborted(self) -> bytes:
        """Finish by order what no worker will: the rest of the rendered answer."""
        events = []
        for prompt, choice in sorted(self._open):
            item = pb.Item(choice=choice)
            item.finish.reason = pb.Finish.ABORT
            events.append(self.renderer.item(prompt, item))
        self._open.clear()
        return b"".join([*events, self.renderer.end()])

    def delivered(self, prompt: int, choice: int) -> int:
        """Tokens of this choice that have come."""
        return len(self._delivered(prompt, choice))

    def _delivered(self, prompt: int, choice: int) -> "array[int]":
        return self._ids.get((prompt, choice)) or array("I")

    def _submit(self, prompt: int, rid: str) -> pb.Submit:
        generation = self._generation
        submit = pb.Submit(
            rid=rid,
            input_ids=self._prompts[prompt].tobytes(),
            sampling=generation.sampling,
            priority=generation.priority,
            credit=STREAM_CREDIT if generation.stream else WHOLE_CREDIT,
        )
        sampling = submit.sampling
        sampling.seed = self._seed
        if self._wants_scores:
            sampling.logprob_start += self._scored[prompt]
        if generation.salt is not None:
            submit.salt = generation.salt
        if generation.adapter is not None:
            submit.adapter = generation.adapter
        return submit
