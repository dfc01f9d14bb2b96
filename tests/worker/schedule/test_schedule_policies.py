"""Which of those who wait comes next, and that a shared prefix is computed once."""

import random

import pytest

from history_model import expected_greedy
from small_engine import Ear, SmallEngine


def order_of_first_tokens(engine: SmallEngine, ear: Ear) -> list[int]:
    engine.run()
    return list(dict.fromkeys(item.handle for item in ear.items))


def prefill_tokens(policy: str) -> int:
    """100 requests over 20 prefixes, all queued in no order, with room for 6 prefixes."""
    rng = random.Random(3)
    prefixes = [[rng.randrange(64) for _ in range(256)] for _ in range(20)]
    handles = list(range(100))
    rng.shuffle(handles)
    engine = SmallEngine(
        pages=6 * (256 + 32 + 16) // 16,
        page_size=16,
        chunked_prefill_size=512,
        schedule_policy=policy,
        max_running_requests=8,
    )
    ear = Ear()
    for handle in handles:
        own = [rng.randrange(64) for _ in range(32)]
        engine.submit(ear, handle, prefixes[handle % 20] + own, max_tokens=4)
    engine.run()
    assert all(ear.finish(handle) == "LENGTH" for handle in handles)
    engine.check_idle()
    return engine.core.stats().prefill_tokens_total


@pytest.mark.slow
def test_lpm_computes_at_most_60_percent_of_the_prompt_tokens_of_fcfs() -> None:
    fcfs, lpm = prefill_tokens("fcfs"), prefill_tokens("lpm")
    assert lpm <= 0.6 * fcfs, f"{lpm} of {fcfs}"


def test_of_those_who_share_a_prefix_one_computes_it_and_the_others_wait() -> None:
    shared = list(range(40))
    computed = {}
    for policy in ("fcfs", "lpm"):
        engine = SmallEngine(schedule_policy=policy, chunked_prefill_size=128, pages=128)
        ear = Ear()
        for handle in range(3):
            engine.submit(ear, handle, [*shared, 50 + handle], max_tokens=2)
        engine.submit(ear, 9, [60, 61], max_tokens=2)
        engine.step()
        waits = [handle for handle in (0, 1, 2, 9) if not ear.of(handle)]
        assert waits == ([] if policy == "fcfs" else [1, 2])
        engine.run()
        for handle in range(3):
            assert ear.ids(handle) == expected_greedy([*shared, 50 + handle], 2)
        computed[policy] = engine.core.stats().prefill_tokens_total
        engine.check_idle()
    assert computed == {"fcfs": 3 * 41 + 2, "lpm": 41 + 1 + 1 + 2}


def test_a_prefix_of_less_than_32_tokens_is_not_waited_for() -> None:
    engine = SmallEngine(schedule_policy="lpm", chunked_prefill_size=128)
    ear = Ear()
    for handle in range(3):
        engine.submit(ear, handle, [*range(30), 50 + handle], max_tokens=2)
    engine.step()
    assert all(ear.of(handle) for handle in range(3))


def test_nobody_waits_for_a_prefix_whose_reader_has_stalled() -> None:
    engine = SmallEngine(schedule_policy="lpm", page_size=64, chunked_prefill_size=256, pages=8)
    ear = Ear()
    engine.submit(ear, 1, [1] * 64 + [2], max_tokens=2, credit=0)
    engine.submit(ear, 2, [1] * 64 + [3], max_tokens=2)
    engine.run()
    assert ear.finish(2) == "LENGTH"
    assert not ear.of(1)


def test_a_leader_that_does_not_fit_holds_up_no_follower() -> None:
    engine = SmallEngine(
        schedule_policy="lpm", pages=28, chunked_prefill_size=128, schedule_conservativeness=0.0
    )
    ear = Ear()
    engine.submit(ear, 0, [9] * 40, max_tokens=24)
    engine.step()
    engine.submit(ear, 1, list(range(36)) + [1] * 60, max_tokens=2)
    engine.submit(ear, 2, [*range(36), 2], max_tokens=2)
    engine.run_until(lambda: ear.finish(2) is not None)
    assert ear.finish(0) is None
    assert not ear.of(1)
    engine.run()
    assert ear.finish(1) == "LENGTH"


def test_above_128_waiting_lpm_is_fcfs_and_then_by_prefix_again() -> None:
    engine = SmallEngine(schedule_policy="lpm", max_running_requests=1, pages=512)
    engine.answer([1] * 9, max_tokens=1)
    ear = Ear()
    for handle in range(140):
        engine.submit(ear, handle, [2, handle % 64, 3], max_tokens=1)
    engine.submit(ear, 900, [1] * 9, max_tokens=1)
    order = order_of_first_tokens(engine, ear)
    assert order[:12] == list(range(12))
    assert 900 in order[13:15]


def test_lof_takes_the_longest_output_first_and_priority_before_all() -> None:
    engine = SmallEngine(schedule_policy="lof", max_running_requests=1)
    ear = Ear()
    for handle, tokens, priority in ((1, 2, 0), (2, 9, 0), (3, 9, 0), (4, 1, 1)):
        engine.submit(ear, handle, [handle], max_tokens=tokens, priority=priority)
    assert order_of_first_tokens(engine, ear) == [4, 2, 3, 1]


def test_by_lot_the_seed_decides_and_nobody_is_forgotten() -> None:
    orders = []
    for seed in (1, 1, 2):
        engine = SmallEngine(schedule_policy="random", max_running_requests=1, random_seed=seed)
        ear = Ear()
        for handle in range(12):
            engine.submit(ear, handle, [handle], max_tokens=1)
        orders.append(order_of_first_tokens(engine, ear))
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(12)) != orders[0]


def test_dfs_weight_goes_first_where_most_hang() -> None:
    engine = SmallEngine(schedule_policy="dfs-weight", max_running_requests=1)
    trunk = [1] * 8
    for branch in (2, 3, 4):
        engine.answer([*trunk, *[branch] * 8, 5], max_tokens=1)
    ear = Ear()
    asked = {
        1: [9, 9],  # no branch
        2: [*trunk, *[2] * 8, 7],
        3: [*trunk, 7],  # at the fork
        4: [*trunk, *[3] * 8, 7],
        5: [*trunk, *[3] * 8, 8],
        6: [*trunk, *[3] * 8, 9],
    }
    for handle, prompt in asked.items():
        engine.submit(ear, handle, prompt, max_tokens=1)
    assert order_of_first_tokens(engine, ear) == [4, 5, 2, 6, 3, 1]


@pytest.mark.parametrize("policy", ["lpm", "dfs-weight"])
def test_a_long_queue_is_looked_up_only_when_the_cache_has_changed(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SmallEngine(schedule_policy=policy, max_running_requests=2, pages=512)
    cache = engine.core._memory._cache
    looked = 0
    look_up = cache.look_up

    def counted(*args: object) -> object:
        nonlocal looked
        looked += 1
        return look_up(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "look_up", counted)
    ear = Ear()
    engine.submit(ear, 0, [1, 2], max_tokens=40)
    engine.step()
    for handle in range(1, 100):
        engine.submit(ear, handle, [handle % 60, 3, 4], max_tokens=1)
    looked = 0
    for _ in range(10):
        engine.step()
    # Prompts shorter than a page change nothing in the cache.
    assert looked == 0
