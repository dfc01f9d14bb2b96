"""What a worker reports: stored, removed, pending; epochs, tiers and digests."""

import pytest

from clocks import FakeClock
from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_updates import Digest
from radixgate.radix_mirror import reports
from radixgate.radix_mirror.mirror import MirrorConfig, RadixMirror, WorkerBlocks

PROMPT = [11, 12, 13, 14]


def mirror_of(*workers: str, config: MirrorConfig | None = None) -> RadixMirror:
    mirror = RadixMirror(FakeClock(), config)
    for worker in workers:
        mirror.add_worker(worker)
        mirror.reset(worker, 1)
    return mirror


def test_each_worker_counts_as_far_as_it_reported() -> None:
    mirror = mirror_of("a", "b", "c")
    mirror.apply("a", 1, [Stored(0, PROMPT)])
    mirror.apply("b", 1, [Stored(0, PROMPT[:2])])
    assert mirror.depths(PROMPT) == {"a": 4, "b": 2}
    assert mirror.depths([]) == {}
    mirror.check()


def test_a_hole_ends_the_match() -> None:
    mirror = mirror_of("a", "b")
    for worker in ("a", "b"):
        mirror.apply(worker, 1, [Stored(0, PROMPT)])
    mirror.apply("a", 1, [Removed([12])])
    assert mirror.depths(PROMPT) == {"a": 1, "b": 4}
    mirror.check()


def test_stored_twice_and_removed_once_is_gone() -> None:
    mirror = mirror_of("a")
    mirror.apply("a", 1, [Stored(0, [11]), Stored(0, [11]), Removed([11])])
    assert mirror.depths(PROMPT) == {}
    assert len(mirror) == 0


def test_a_block_lies_in_tiers_one_by_one() -> None:
    mirror = mirror_of("a")
    mirror.apply("a", 1, [Stored(0, [11, 12]), Stored(0, [11, 12], Tier.HOST), Removed([12, 11])])
    assert mirror.depths(PROMPT) == {"a": 2}
    expected = {Tier.DEVICE: Digest(), Tier.HOST: Digest(2, 11 ^ 12), Tier.STORAGE: Digest()}
    assert mirror.digests("a") == expected
    mirror.apply("a", 1, [Removed([12], Tier.HOST)])
    assert mirror.depths(PROMPT) == {"a": 1}
    mirror.check()


def test_events_of_an_old_epoch_are_void_and_counted() -> None:
    mirror = mirror_of("a")
    mirror.reset("a", 2)
    mirror.apply("a", 1, [Stored(0, PROMPT)])
    mirror.complete("a", 1)
    blocks = mirror.blocks_of("a")
    assert (blocks.late_updates, blocks.complete, mirror.depths(PROMPT)) == (1, False, {})
    mirror.apply("a", 1, [Removed(PROMPT)])
    assert mirror.blocks_of("a").late_updates == 2


def test_of_a_worker_that_is_not_there_nothing_is_held() -> None:
    nothing = WorkerBlocks(dict.fromkeys(Tier, 0), 0, 0, 0, None, False, 0)
    assert mirror_of("a").blocks_of("b") == nothing


def test_a_reset_forgets_stored_and_pending_but_not_what_was_sent() -> None:
    mirror = mirror_of("a")
    mirror.apply("a", 1, [Stored(0, [21]), Pending(5, 0, [31])])
    mirror.expect("a", PROMPT, keep_s=2.0)
    mirror.reset("a", 2)
    assert [mirror.depths([21]), mirror.depths([31]), mirror.depths(PROMPT)] == [{}, {}, {"a": 4}]
    mirror.check()


def test_complete_is_told_once_a_snapshot_ended() -> None:
    mirror = mirror_of("a")
    assert not mirror.blocks_of("a").complete
    mirror.complete("a", 1)
    assert mirror.blocks_of("a").complete
    mirror.reset("a", 2)
    assert not mirror.blocks_of("a").complete


@pytest.mark.parametrize(
    "then",
    [
        pytest.param([Settled(5)], id="aborted"),
        pytest.param([Settled(5), Settled(5)], id="settled-twice"),
        pytest.param([Stored(0, PROMPT), Settled(5), Removed(PROMPT)], id="stored-and-evicted"),
        pytest.param([Stored(0, PROMPT), Removed(PROMPT), Settled(5)], id="evicted-at-once"),
    ],
)
def test_a_pending_prompt_counts_until_it_is_settled(then: list[KvEvent]) -> None:
    mirror = mirror_of("a")
    mirror.apply("a", 1, [Pending(5, 0, PROMPT)])
    assert mirror.depths(PROMPT) == {"a": 4}
    mirror.apply("a", 1, then)
    assert mirror.depths(PROMPT) == {}
    assert len(mirror) == 0
    mirror.check()


def test_pending_prompts_share_blocks() -> None:
    mirror = mirror_of("a")
    mirror.apply("a", 1, [Pending(5, 0, PROMPT), Pending(6, 0, PROMPT[:2]), Settled(5)])
    assert mirror.depths(PROMPT) == {"a": 2}
    mirror.check()


def test_a_key_that_pends_again_stands_for_the_new_prompt() -> None:
    mirror = mirror_of("a")
    mirror.apply("a", 1, [Pending(5, 0, PROMPT), Pending(5, 0, [21])])
    assert (mirror.depths(PROMPT), mirror.depths([21])) == ({}, {"a": 1})
    mirror.check()


def test_pending_prompts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MAX_PENDING_PROMPTS", 2)
    mirror = mirror_of("a")
    mirror.apply("a", 1, [Pending(n, 0, [100 + n]) for n in range(3)])
    assert mirror.blocks_of("a").pending_prompts == 2
    assert mirror.depths([100]) == {}
    assert mirror.depths([102]) == {"a": 1}


def test_an_unknown_worker_holds_nothing_and_takes_nothing() -> None:
    mirror = mirror_of("a")
    mirror.reset("x", 1)
    mirror.apply("x", 1, [Stored(0, PROMPT)])
    mirror.complete("x", 1)
    assert mirror.expect("x", PROMPT, keep_s=2.0) is None
    assert mirror.digests("x") == {}
    assert mirror.blocks_of("x").stored[Tier.DEVICE] == 0
    mirror.remove_worker("x")
    assert len(mirror) == 0


def test_a_worker_that_comes_back_is_cold_and_takes_no_other_bit() -> None:
    mirror = mirror_of("a", "b", "c")
    for worker in ("a", "b", "c"):
        mirror.apply(worker, 1, [Stored(0, PROMPT), Pending(1, 0, [31])])
        mirror.expect(worker, [41], keep_s=2.0)
    mirror.remove_worker("b")
    mirror.add_worker("d")
    mirror.add_worker("b")
    assert mirror.depths(PROMPT) == {"a": 4, "c": 4}
    assert mirror.depths([31]) == {"a": 1, "c": 1}
    assert mirror.depths([41]) == {"a": 1, "c": 1}
    mirror.check()


def test_many_workers_fit_one_mask() -> None:
    names = [f"w{n}" for n in range(300)]
    mirror = mirror_of(*names)
    for n, name in enumerate(names):
        mirror.apply(name, 1, [Stored(0, PROMPT[: n % 5])])
    assert mirror.depths(PROMPT) == {name: n % 5 for n, name in enumerate(names) if n % 5}
    mirror.check()
