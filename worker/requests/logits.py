"""What changes logits before a token is chosen: penalties, biases, and tokens that may not come."""

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from radixgate.proto.sampling import SamplingParams

Row = npt.NDArray[np.float32]  # the logits of one position, one a token of the vocabulary


class LogitsProcessor(Protocol):
    """One link of a choice's chain; made for that choice, so it may keep state.

    Grammars and custom processors become links of their own.
    """

    def apply(self, logits: Row, ids: "array[int]", prompt_tokens: int) -> None:
        """Change `logits` in place, for the position after `ids` (prompt, then output)."""
        ...


class Penalties:
    """Repetition over prompt and output; frequency and presence over the output only.

    Counts are carried along, so a call costs O(new tokens + distinct tokens).
    """

    def __init__(self, repetition: float, frequency: float, presence: float) -> None:
        self._repetition = repetition
        self._frequency = frequency
        self._presence = presence
        self._output: Counter[int] = Counter()
        self._prompt: npt.NDArray[np.int64] | None = None
        self._counted = 0  # tokens of output in the counts

    def apply(self, logits: Row, ids: "array[int]", prompt_tokens: int) -> None:
        if self._prompt is None:
            self._prompt = np.unique(np.frombuffer(ids[:prompt_tokens], dtype=np.uint32)).astype(
                np.int64
            )
        self._output.update(ids[prompt_tokens + self._counted :])
        self._counted = len(ids) - prompt_tokens
        output = np.fromiter(self._output, dtype=np.int64, count=len(self._output))
        if self._repetition != 1.0:
            seen = np.union1d(self._prompt, output)
            values = logits[seen]
            scale = np.float32(self._repetition)
            logits[seen] = np.where(values > 0, values / scale, values * scale)
        if self._frequency or self._presence:
            counts = np.fromiter(self._output.values(), dtype=np.float32, count=len(output))
            penalty = np.float32(self._frequency) * counts + np.float32(self._presence)
            logits[output] -= penalty


class LogitBias:
    """Adds a fixed amount to some tokens."""

    def __init__(self, bias: dict[int, float]) -> None:
        self._tokens = np.fromiter(bias, dtype=np.int64, count=len(bias))
        self._amounts = np.fromiter(bias.values(), dtype=np.float32, count=len(bias))

    def apply(self, logits: Row, ids: "array[int]", prompt_tokens: int) -> None:
        logits[self._tokens] += self._amounts


class MinTokens:
    """Until the output has `min_tokens` tokens, prior output included, nothing may end it."""

    def __init__(self, min_tokens: int, stop_ids: frozenset[int]) -> None:
        self._min_tokens = min_tokens
        self._stop_ids = np.fromiter(sorted(stop_ids), dtype=np.int64, count=len(stop_ids))

    def apply(self, logits: Row, ids: "array[int]", prompt_tokens: int) -> None:
        if len(ids) - prompt_tokens < self._min_tokens:
            logits[self._stop_ids] = -np.inf


def standard_processors(
    sampling: SamplingParams, stop_ids: frozenset[int]
) -> Sequence[LogitsProcessor]:
    """The chain of one choice, in order; empty where logits stay as they are.

    Temperature and the cuts (top_k, top_p, min_p) come after it, in the sampler.
    """
    chain: list[LogitsProcessor] = []
    frequency, presence = sampling.frequency_penalty, sampling.presence_penalty
    if sampling.repetition_penalty != 1.0 or frequency or presence:
        chain.append(Penalties(sampling.repetition_penalty, frequency, presence))
    if sampling.logit_bias:
        chain.append(LogitBias(dict(sampling.logit_bias)))
    if sampling.min_tokens and stop_ids:
        chain.append(MinTokens(sampling.min_tokens, stop_ids))
    return chain
