"""A logits processor that forces a given sequence of tokens, whatever the model says."""

from array import array
from collections.abc import Sequence

import numpy as np

from radixgate.proto.sampling import SamplingParams
from radixgate.worker.requests.intake import ProcessorFactory
from radixgate.worker.requests.logits import LogitsProcessor, Row, standard_processors


class Script:
    """Output token i is `ids[i]`; behind the script the model is free."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = ids

    def apply(self, logits: Row, ids: "array[int]", prompt_tokens: int) -> None:
        place = len(ids) - prompt_tokens
        if place < len(self._ids):
            logits[:] = -np.inf
            logits[self._ids[place]] = 0.0


def scripted(ids: Sequence[int]) -> ProcessorFactory:
    """Every choice of every request says `ids`. The script has the last word in the chain."""

    def chain(sampling: SamplingParams, stop_ids: frozenset[int]) -> Sequence[LogitsProcessor]:
        return [*standard_processors(sampling, stop_ids), Script(ids)]

    return chain
