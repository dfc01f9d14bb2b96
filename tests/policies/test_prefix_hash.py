"""prefix_hash: one beginning, one worker, until that has more than its share."""

import random
from collections import Counter

import pytest

from columns import PROMPT, columns
from radixgate.errors import ConfigError
from radixgate.policies.base import RouteRequest
from radixgate.policies.prefix_hash import PrefixHash, PrefixHashConfig


def policy(tokens: int = 1_024, factor: float = 1.25) -> PrefixHash:
    return PrefixHash(PrefixHashConfig(tokens, factor), random.Random(1))


def prompt(*blocks: int, rest: int = 5) -> RouteRequest:
    return RouteRequest(16 * len(blocks) + rest, blocks=blocks)


def home(request: RouteRequest, ids: list[str], tokens: int = 1_024) -> str:
    return ids[policy(tokens).choose(request, columns(len(ids), ids=ids)).index]


WORKERS = [f"w{n}" for n in range(8)]


def test_the_same_beginning_goes_to_the_same_worker_whatever_follows() -> None:
    one = prompt(1, 2, 3, 40)
    other = prompt(1, 2, 3, 50, 60, rest=15)
    assert home(one, WORKERS, tokens=48) == home(other, WORKERS, tokens=48)


@pytest.mark.parametrize("blocks", range(64, 200, 9))
@pytest.mark.parametrize("rest", [0, 1, 15])
def test_the_length_of_a_prompt_does_not_move_its_beginning(blocks: int, rest: int) -> None:
    shared = list(range(1, 65))  # 1,024 tokens
    request = prompt(*shared, *range(1_000, 1_000 + blocks - 64), rest=rest)
    assert home(request, WORKERS) == home(prompt(*shared), WORKERS)


def test_blocks_that_hold_more_further_on_do_not_move_the_beginning() -> None:
    """Sixteen of 64 tokens are the beginning, whatever is the mean of all."""
    homes = set()
    for number in range(1_000, 1_060):
        shared = (*range(15), number)
        short = RouteRequest(1_030, blocks=shared, block_tokens=64)
        long = RouteRequest(50_000, blocks=(*shared, *range(100, 300)), block_tokens=64)
        homes.add(home(short, WORKERS))
        assert home(long, WORKERS) == home(short, WORKERS)
    assert homes == set(WORKERS)


def test_what_differs_within_the_beginning_may_be_elsewhere() -> None:
    homes = {home(prompt(1, n, 3, 4), WORKERS, tokens=32) for n in range(2, 60)}
    assert homes == set(WORKERS)


def test_a_worker_that_leaves_moves_only_its_own() -> None:
    homes = {n: home(prompt(n), WORKERS) for n in range(1, 200)}
    fewer = [name for name in WORKERS if name != "w3"]
    moved = {n for n in homes if home(prompt(n), fewer) != homes[n]}
    assert moved == {n for n, name in homes.items() if name == "w3"}
    assert 10 <= len(moved) <= 45


def test_beginnings_spread_evenly() -> None:
    homes = Counter(home(prompt(n), WORKERS) for n in range(1, 801))
    assert all(60 <= count <= 140 for count in homes.values())


def test_a_home_with_more_than_its_share_is_passed_over() -> None:
    request = prompt(7)
    chosen = policy().choose(request, columns(8)).index
    busy = [2] * 8
    busy[chosen] = 3
    choice = policy().choose(request, columns(8, requests=busy))
    assert choice.branch == "overflow"
    assert choice.index != chosen
    assert policy(factor=2.0).choose(request, columns(8, requests=busy)).index == chosen


def test_a_prompt_without_a_whole_block_goes_to_the_fewest_requests() -> None:
    assert policy().choose(PROMPT, columns(3, requests=[2, 0, 1])).index == 1


def test_one_token_and_the_mean_itself_can_be_set() -> None:
    assert policy(tokens=1, factor=1.0).choose(prompt(7), columns(2)).branch == "home"


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="prefix_hash_tokens"):
        PrefixHashConfig(prefix_hash_tokens=0)
    with pytest.raises(ConfigError, match="prefix_hash_load_factor"):
        PrefixHashConfig(prefix_hash_load_factor=0.9)
