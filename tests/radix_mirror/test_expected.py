"""What was sent and is not reported yet: claims of one's own, with deadlines."""

import pytest

from clocks import FakeClock
from radixgate.proto.kv_events import Removed, Stored, Tier
from radixgate.radix_mirror.budget import CLAIM_BYTES, CLAIMED_BYTES
from radixgate.radix_mirror.mirror import MirrorConfig, Placement, RadixMirror

PROMPT = [11, 12, 13, 14]


class Bench:
    """One reporting worker and a clock."""

    def __init__(self, config: MirrorConfig | None = None) -> None:
        self.clock = FakeClock()
        self.mirror = RadixMirror(self.clock, config)
        self.mirror.add_worker("a")
        self.mirror.reset("a", 1)

    def expect(self, ids: list[int], keep_s: float = 2.0, held: int = 0) -> Placement:
        placement = self.mirror.expect("a", ids, keep_s, held)
        assert placement is not None
        self.mirror.check()
        return placement

    def depth(self, ids: list[int]) -> int:
        self.mirror.check()
        return self.mirror.depths(ids).get("a", 0)


def test_a_prompt_counts_from_dispatch_to_its_deadline() -> None:
    bench = Bench()
    bench.expect(PROMPT, keep_s=2.0)
    bench.clock.advance(1.999)
    assert bench.depth(PROMPT) == 4
    bench.clock.advance(0.001)
    assert bench.depth(PROMPT) == 0
    assert len(bench.mirror) == 0


def test_a_withdrawn_prompt_leaves_what_others_expect() -> None:
    bench = Bench()
    failed = bench.expect(PROMPT)
    bench.expect(PROMPT[:2])
    bench.mirror.withdraw(failed)
    bench.mirror.withdraw(failed)
    assert bench.depth(PROMPT) == 2


def test_what_two_prompts_expect_leaves_with_the_later_of_them() -> None:
    bench = Bench()
    bench.expect(PROMPT, keep_s=2.0)
    bench.expect(PROMPT, keep_s=3.0)
    bench.clock.advance(2.5)
    assert bench.depth(PROMPT) == 4
    bench.clock.advance(0.5)
    assert bench.depth(PROMPT) == 0


def test_a_confirmed_block_stays_when_its_claim_leaves() -> None:
    bench = Bench()
    placement = bench.expect(PROMPT)
    bench.mirror.apply("a", 1, [Stored(0, PROMPT[:3])])
    bench.mirror.withdraw(placement)
    assert bench.depth(PROMPT) == 3


def test_a_confirmed_block_that_is_evicted_is_not_expected_any_more() -> None:
    bench = Bench()
    bench.expect(PROMPT)
    bench.mirror.apply("a", 1, [Stored(0, PROMPT), Removed(PROMPT[2:])])
    assert bench.depth(PROMPT) == 2


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(PROMPT, id="the-prompt"),
        pytest.param([99, *PROMPT], id="behind-another-block"),
        pytest.param([*PROMPT[:2], 99, *PROMPT[2:]], id="around-another-block"),
    ],
)
def test_of_what_is_stored_nothing_is_expected_any_more(stored: list[int]) -> None:
    bench = Bench()
    bench.expect(PROMPT)
    bench.mirror.apply("a", 1, [Stored(0, stored)])
    assert bench.mirror.blocks_of("a").expected == 0
    bench.mirror.apply("a", 1, [Removed(PROMPT)])
    assert bench.depth(PROMPT) == 0


def test_a_claim_ended_by_a_confirmation_takes_nothing_from_a_later_one() -> None:
    bench = Bench()
    first = bench.expect(PROMPT)
    bench.mirror.apply("a", 1, [Stored(0, PROMPT), Removed(PROMPT)])
    bench.expect(PROMPT)
    bench.mirror.withdraw(first)
    assert bench.depth(PROMPT) == 4


def test_what_is_stored_is_not_expected_besides() -> None:
    bench = Bench()
    bench.mirror.apply("a", 1, [Stored(0, PROMPT[:3])])
    bench.expect(PROMPT)
    assert bench.mirror.blocks_of("a").expected == 1
    assert bench.depth(PROMPT) == 4


def test_what_a_look_found_stored_is_not_looked_at_again() -> None:
    bench = Bench()
    bench.mirror.apply("a", 1, [Stored(0, [*PROMPT[:2], PROMPT[3]])])
    bench.expect(PROMPT, held=bench.depth(PROMPT))
    assert bench.mirror.blocks_of("a").expected == 1
    assert bench.depth(PROMPT) == 4


def test_what_a_look_found_claimed_is_claimed_once_more() -> None:
    bench = Bench()
    first = bench.expect(PROMPT[:3])
    bench.expect(PROMPT, held=bench.depth(PROMPT))
    bench.mirror.withdraw(first)
    assert bench.depth(PROMPT) == 4


def test_what_is_held_in_another_tier_is_claimed_though_a_look_found_it() -> None:
    bench = Bench()
    bench.mirror.apply("a", 1, [Stored(0, PROMPT, Tier.HOST)])
    bench.expect(PROMPT, held=bench.depth(PROMPT))
    bench.mirror.apply("a", 1, [Removed(PROMPT, Tier.HOST)])
    assert bench.depth(PROMPT) == 4


def test_a_claim_that_ended_since_the_look_is_not_taken_for_stored() -> None:
    bench = Bench()
    bench.expect(PROMPT, keep_s=2.0)
    held = bench.depth(PROMPT)
    bench.clock.advance(2.0)
    bench.expect(PROMPT, held=held)
    assert bench.depth(PROMPT) == 4


def test_beyond_the_budget_the_nearest_deadline_leaves() -> None:
    bench = Bench(MirrorConfig(mirror_budget_bytes=4 * CLAIMED_BYTES + 2 * CLAIM_BYTES))
    bench.expect([1, 2], keep_s=5.0)
    bench.expect([3, 4], keep_s=2.0)
    bench.expect([5, 6], keep_s=9.0)
    assert [bench.depth([1, 2]), bench.depth([3, 4]), bench.depth([5, 6])] == [2, 0, 2]


def test_a_claim_outlives_its_worker_without_harm() -> None:
    bench = Bench()
    placement = bench.expect(PROMPT)
    bench.mirror.remove_worker("a")
    bench.mirror.add_worker("b")
    bench.mirror.reset("b", 1)
    bench.mirror.expect("b", PROMPT, 2.0)
    bench.mirror.withdraw(placement)
    assert bench.mirror.depths(PROMPT) == {"b": 4}
    bench.mirror.check()
