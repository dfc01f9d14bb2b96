"""From logits to one token a row, each draw a function of (seed, choice, position) alone."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from xxhash import xxh3_64_intdigest

from radixgate.errors import RadixgateError
from radixgate.proto.sampling import SamplingParams
from radixgate.worker.requests.logits import Row
from radixgate.worker.requests.sequence import TokenSequence
from radixgate.worker.steps.logprobs import RowLogprobs, row_logprobs

_pack_draw = struct.Struct("<QQQ").pack

Tokens = npt.NDArray[np.intp]  # ids, ascending


class UnusableLogits(RadixgateError):
    """A row of logits with no finite maximum: nothing can be chosen from it."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The token chosen for one row."""

    token_id: int
    logprobs: RowLogprobs | None  # None: not asked for


def uniform(seed: int, choice: int, position: int) -> float:
    """The number in [0, 1) that decides token `position` of a choice's output."""
    return float(xxh3_64_intdigest(_pack_draw(seed, choice, position)) >> 11) * 2.0**-53


def sample(logits: torch.Tensor, sequences: Sequence[TokenSequence]) -> list[Draw | Exception]:
    """One token for each row of `logits` [rows, vocab] and its sequence.

    A row's token depends on nothing but the row and its sequence. An error in one row takes the
    place of its draw and leaves the others alone. An all-greedy batch costs one argmax.
    """
    greedy, usable = _best(logits)
    draws: list[Draw | Exception] = []
    for row, sequence in enumerate(sequences):
        if not usable[row]:
            draws.append(UnusableLogits("the model gave logits that are not finite"))
        elif _plain(sequence):
            draws.append(Draw(greedy[row], None))
        else:
            draws.append(_draw_or_error(logits[row], sequence))
    return draws


def _best(logits: torch.Tensor) -> tuple[list[int], list[bool]]:
    """The most likely token of each row, and whether the row can be used at all."""
    if not logits.is_cpu:
        best = logits.max(dim=-1)
        return best.indices.tolist(), torch.isfinite(best.values).tolist()
    # On a CPU torch takes fifty times as long as numpy for this: 1.3 ms for 8 rows of 49k.
    rows = logits.numpy()
    tokens = rows.argmax(axis=-1)
    return tokens.tolist(), np.isfinite(rows[np.arange(len(rows)), tokens]).tolist()


def _plain(sequence: TokenSequence) -> bool:
    sampling = sequence.request.sampling
    return sampling.greedy and not sequence.processors and sampling.top_logprobs is None


def _draw_or_error(logits: torch.Tensor, sequence: TokenSequence) -> Draw | Exception:
    try:
        return _draw(logits.cpu().numpy(), sequence)
    except Exception as exc:  # whatever it is, it is this request's and stays with it
        return exc


def _draw(raw: Row, sequence: TokenSequence) -> Draw:
    request = sequence.request
    sampling = request.sampling
    logits = raw
    if sequence.processors:
        logits = raw.copy()
        for processor in sequence.processors:
            processor.apply(logits, sequence.ids, request.prompt_tokens)
    if sampling.greedy:
        token = int(logits.argmax())
    else:
        point = uniform(request.seed, sequence.choice, sequence.output_len)
        token = choose(logits, sampling, point)
    if sampling.top_logprobs is None:
        return Draw(token, None)
    return Draw(token, row_logprobs(raw, token, sampling.top_logprobs, sampling.token_ids_logprob))


def choose(logits: Row, sampling: SamplingParams, point: float) -> int:
    """The token at `point` of the distribution that `sampling` makes of `logits`.

    Temperature first, then top_k, then top_p over what top_k left, then min_p against the most
    likely token. Tokens stand in the order of their ids along [0, 1).
    """
    best = logits.max()
    if not np.isfinite(best):
        raise UnusableLogits("no token is allowed at this position")
    weights = np.exp((logits - best) / np.float32(max(sampling.temperature, 1e-5)))
    tokens = _kept(weights, sampling)
    if tokens is None:
        return _at(weights, point)
    return int(tokens[_at(weights[tokens], point)])


def _at(weights: Row, point: float) -> int:
    # numpy's running sum takes ten times as long.
    ends = torch.from_numpy(weights).cumsum(0, dtype=torch.float64).numpy()
    # A token of weight 0 ends where its neighbour does, and "right" passes over it.
    place = int(np.searchsorted(ends, point * ends[-1], side="right"))
    return min(place, len(ends) - 1)


def _kept(weights: Row, sampling: SamplingParams) -> Tokens | None:
    """The tokens that survive the cuts; None: all do. Of equally likely ones the lower id comes
    first. `weights` are relative to the most likely token's, which has 1."""
    tokens: Tokens | None = None
    if 0 < sampling.top_k < len(weights):
        tokens = _most_likely(weights, sampling.top_k)
    if sampling.top_p < 1.0:
        tokens = _nucleus(weights, tokens, sampling.top_p)
    if sampling.min_p > 0.0:
        likely = weights >= sampling.min_p
        tokens = np.flatnonzero(likely) if tokens is None else tokens[likely[tokens]]
    return tokens


def _most_likely(weights: Row, count: int) -> Tokens:
    edge = float(torch.from_numpy(weights).topk(count, sorted=False).values.min())
    above = np.flatnonzero(weights > edge)
    level = np.flatnonzero(weights == edge)[: count - len(above)]
    return np.sort(np.concatenate((above, level)))


def _nucleus(weights: Row, tokens: Tokens | None, top_p: float) -> Tokens:
    """The fewest most likely of `tokens` (None: all) that have `top_p` of their weight."""
    if tokens is None:
        total = float(weights.sum(dtype=np.float64))
        # Sorting all costs milliseconds. Those below this weight have less than 1 - top_p even
        # all together, so the rest suffices; mostly that is a small part of the vocabulary.
        tokens = np.flatnonzero(weights >= (1.0 - top_p) * total / len(weights))
    else:
        total = float(weights[tokens].sum(dtype=np.float64))
    ranked = tokens[np.argsort(-weights[tokens], kind="stable")]
    reached = np.cumsum(weights[ranked], dtype=np.float64)
    count = int(np.searchsorted(reached, top_p * total, side="left")) + 1
    return np.sort(ranked[:count])
