"""One budget in bytes over all that a mirror holds, and what leaves when it is spent."""

import gc
import random
import tracemalloc
from array import array
from collections.abc import Callable

import pytest

from clocks import FakeClock
from radixgate.errors import ConfigError
from radixgate.proto.kv_events import Stored
from radixgate.radix_mirror.budget import (
    APPROXIMATE_BYTES,
    CLAIM_BYTES,
    CLAIMED_BYTES,
    REMEMBERED_BYTES,
    REPORTED_BYTES,
    MirrorWeight,
)
from radixgate.radix_mirror.mirror import MirrorConfig, RadixMirror
from radixgate.radix_mirror.pieces import PIECE_BLOCKS


def mirror_of(budget_bytes: int) -> RadixMirror:
    """`own` reports, `other` does not."""
    mirror = RadixMirror(FakeClock(), MirrorConfig(mirror_budget_bytes=budget_bytes))
    mirror.add_worker("own")
    mirror.add_worker("other", reports_kv=False)
    mirror.reset("own", 1)
    return mirror


def test_a_weight_is_the_sum_of_its_kinds() -> None:
    weight = MirrorWeight(reported=3, claimed=2, claims=1, approximate=4, remembered=5)
    of_each = (3 * REPORTED_BYTES, 2 * CLAIMED_BYTES, CLAIM_BYTES, 4 * APPROXIMATE_BYTES)
    assert weight.bytes == sum(of_each) + 5 * REMEMBERED_BYTES


def test_earlier_walks_make_room_before_anything_that_is_believed() -> None:
    prompt = list(range(1, 3 * PIECE_BLOCKS + 1))
    stored = len(prompt) * REPORTED_BYTES
    mirror = mirror_of(stored + len(prompt) * REMEMBERED_BYTES + 2 * CLAIM_BYTES)
    mirror.apply("own", 1, [Stored(0, prompt)])
    assert mirror.depths(prompt) == {"own": len(prompt)}
    assert mirror.weight().remembered == len(prompt)
    beyond = [2_000, 2_001]
    mirror.expect("own", beyond, 9.0)
    assert mirror.weight().remembered == len(prompt)
    mirror.expect("own", [3_000, *range(4_000, 4_020)], 9.0)
    assert mirror.weight().remembered == 0
    assert mirror.depths(beyond) == {"own": 2}
    assert mirror.depths(prompt) == {"own": len(prompt)}


def test_what_is_only_believed_makes_room_for_what_is_reported() -> None:
    mirror = mirror_of(10 * APPROXIMATE_BYTES)
    mirror.expect("other", list(range(10)), 1.0)
    assert mirror.blocks_of("other").approximate == 10
    mirror.apply("own", 1, [Stored(0, list(range(100, 104)))])
    # Four reported blocks weigh as much as two or three believed ones.
    assert mirror.blocks_of("other").approximate == 10 - -(-4 * REPORTED_BYTES // APPROXIMATE_BYTES)
    assert mirror.weight().bytes <= 10 * APPROXIMATE_BYTES
    mirror.check()


def test_then_the_nearest_deadlines_leave() -> None:
    mirror = mirror_of(2 * CLAIM_BYTES + 4 * CLAIMED_BYTES)
    mirror.expect("own", [1, 2], 9.0)
    mirror.expect("own", [3, 4], 2.0)
    mirror.apply("own", 1, [Stored(0, [50])])
    assert mirror.depths([1, 2]) == {"own": 2}
    assert mirror.depths([3, 4]) == {}


def test_reports_stay_however_much_they_weigh() -> None:
    mirror = mirror_of(0)
    mirror.apply("own", 1, [Stored(0, list(range(1, 101)))])
    mirror.expect("own", [500], 9.0)
    mirror.expect("other", [500], 9.0)
    assert mirror.weight() == MirrorWeight(reported=100, claimed=0, claims=0, approximate=0)
    mirror.check()


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(ConfigError, match="mirror_budget_bytes is -1"):
        MirrorConfig(mirror_budget_bytes=-1)


@pytest.mark.parametrize(
    ("ttl_s", "message"),
    [
        pytest.param(float("nan"), r"^mirror_ttl_s is nan, it must be a number up to 1e\+12$"),
        pytest.param(float("inf"), r"^mirror_ttl_s is inf, it must be a number up to 1e\+12$"),
        pytest.param(-1.0, r"^mirror_ttl_s is -1, it cannot be negative$"),
    ],
)
def test_time_that_has_no_end_or_is_negative_is_refused(ttl_s: float, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MirrorConfig(mirror_ttl_s=ttl_s)


def report(mirror: RadixMirror, prompt: list[int]) -> None:
    mirror.apply("own", 1, [Stored(0, prompt)])


def claim(mirror: RadixMirror, prompt: list[int]) -> None:
    mirror.expect("own", prompt, 9.0)


def claim_whole(mirror: RadixMirror, prompt: list[int]) -> None:
    """Prompts as long as this are claimed in pieces."""
    ids = array("Q", (block ^ n for n in range(3) for block in prompt))
    mirror.expect("own", ids, 9.0)


def believe(mirror: RadixMirror, prompt: list[int]) -> None:
    mirror.expect("other", prompt, 9.0)


@pytest.mark.parametrize("enter", [report, claim, claim_whole, believe])
def test_what_an_entry_weighs_is_what_it_takes(enter: Callable[..., None]) -> None:
    """Within a half: tables double in size now and then, so no figure is exact for all counts."""
    rng = random.Random(1)
    prompts = [[rng.getrandbits(63) for _ in range(64)] for _ in range(150)]
    mirror = mirror_of(10**9)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for prompt in prompts:
        # The ids are made anew, as they are for each prompt that comes.
        enter(mirror, [block + 0 for block in prompt])
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.5 <= mirror.weight().bytes / taken <= 1.5


def test_it_is_weighed_before_it_can_be_too_much() -> None:
    budget = 40_000
    mirror, draw = mirror_of(budget), random.Random(1)
    heaviest = 0
    for _ in range(300):
        first = draw.randrange(5) * 1_000
        prompt = list(range(first + 1, first + draw.randrange(1, 3 * PIECE_BLOCKS)))
        mirror.depths(prompt)
        for worker in draw.choice((["own"], ["other", "own"])):
            mirror.expect(worker, prompt, 9.0)
        if draw.random() < 0.1:
            mirror.forget()
        mirror.check()
        heaviest = max(heaviest, mirror.weight().bytes)
    assert 0.9 * budget < heaviest <= budget


def test_walks_alone_keep_to_it_too() -> None:
    """As where two models have a name, or somebody only asks what would be."""
    prompts = [list(range(first, first + 10 * PIECE_BLOCKS)) for first in range(0, 10_000, 1_000)]
    stored = sum(map(len, prompts)) * REPORTED_BYTES
    budget = stored + 25 * PIECE_BLOCKS * REMEMBERED_BYTES
    mirror = mirror_of(budget)
    for prompt in prompts:
        mirror.apply("own", 1, [Stored(0, prompt)])
    remembered = []
    for prompt in prompts * 3:
        assert mirror.depths(prompt) == {"own": len(prompt)}
        remembered.append(mirror.weight().remembered // PIECE_BLOCKS)
        assert mirror.weight().bytes <= budget
        mirror.check()
    assert max(remembered) == 20
    assert remembered.count(20) == 10
