"""The same beginning goes to the same worker, without any memory, and within a bound of load."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_finite
from radixgate.errors import ConfigError, NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.turns import Turns


@dataclass(frozen=True, slots=True)
class PrefixHashConfig:
    """How much of a prompt is its beginning, and how much more than the mean a worker may carry."""

    prefix_hash_tokens: int = knob(
        1_024,
        help="prefix_hash: the prompt's first whole blocks up to so many tokens are hashed",
        unit="tokens",
    )
    prefix_hash_load_factor: float = knob(
        1.25, help="prefix_hash: a worker takes at most so many times the mean of the requests"
    )

    def __post_init__(self) -> None:
        check_finite(self)
        if self.prefix_hash_tokens < 1:
            raise ConfigError(f"prefix_hash_tokens is {self.prefix_hash_tokens}, it must be over 0")
        if not self.prefix_hash_load_factor >= 1.0:
            raise ConfigError(
                f"prefix_hash_load_factor is {self.prefix_hash_load_factor:g}, below 1 nobody could"
                " take the mean"
            )


class PrefixHash:
    """Rendezvous hashing: each worker has a rank for each beginning; the first that has room wins.

    A worker that joins or leaves moves only its own share of the beginnings. A prompt without a
    whole block goes to the fewest requests.
    """

    def __init__(self, config: PrefixHashConfig, rng: random.Random) -> None:
        self._config = config
        self._turns = Turns(rng)

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates log candidates). Raises NoWorkerAvailable if there are none."""
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        requests = candidates.requests_in_flight
        beginning = self._beginning(request)
        if beginning is None:
            return self._fewest_requests(candidates)
        ranked = sorted(
            range(len(candidates)), key=lambda index: _rank(beginning, candidates.ids[index])
        )
        mean = (sum(requests) + 1) / len(requests)
        most = math.ceil(self._config.prefix_hash_load_factor * mean)
        # Not all of them can be above the mean, so somebody has room.
        place = next(place for place, index in enumerate(ranked) if requests[index] < most)
        return Choice(
            ranked[place], "overflow" if place else "home", lambda: _places(ranked, requests, most)
        )

    def _beginning(self, request: RouteRequest) -> int | None:
        """The id of the last block that counts; None: the prompt has no whole block."""
        blocks = request.blocks
        if not blocks:
            return None
        # The mean where nobody tells: it is more than the size, as a prompt's tail is in no block.
        size = request.block_tokens or max(1.0, request.prompt_tokens / len(blocks))
        wanted = math.ceil(self._config.prefix_hash_tokens / size)
        return blocks[min(wanted, len(blocks)) - 1]

    def _fewest_requests(self, candidates: Candidates) -> Choice:
        requests = candidates.requests_in_flight
        least = min(requests)
        equals = [index for index, count in enumerate(requests) if count == least]
        chosen = self._turns.next(candidates.ids, equals)
        self._turns.took(candidates.ids, chosen)
        return Choice(chosen, "no_prefix", lambda: [float(count) for count in requests])


def _rank(beginning: int, worker_id: str) -> int:
    return xxh3_64_intdigest(worker_id.encode(), seed=beginning & 0xFFFF_FFFF_FFFF_FFFF)


def _places(ranked: Sequence[int], requests: Sequence[int], most: int) -> list[float]:
    """The place in the ranking; a worker without room stands behind all others."""
    scores = [0.0] * len(ranked)
    for place, index in enumerate(ranked):
        scores[index] = float(place if requests[index] < most else place + len(ranked))
    return scores
