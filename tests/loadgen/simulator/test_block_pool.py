"""The simulated KV memory against a plain model."""

from hypothesis import given
from hypothesis import strategies as st

from radixgate.loadgen.simulator.block_pool import BlockPool, Holding
from radixgate.proto.kv_events import Removed, Stored


def finished(pool: BlockPool, ids: list[int]) -> None:
    """A request that ran alone from its admission to its end."""
    holding = pool.admit(ids, pool.depth(ids), len(ids))
    assert holding is not None
    pool.store(holding, len(ids))
    pool.release(holding)
    pool.check()


def test_the_leaf_used_least_recently_goes_first() -> None:
    pool = BlockPool(5)
    finished(pool, [1, 2, 3])
    finished(pool, [1, 4])
    finished(pool, [1, 2, 3])  # now [4] is the oldest leaf, though it came later
    pool.take_events()
    finished(pool, [8, 9])
    assert pool.take_events() == [Removed([4]), Stored(0, [8, 9])]
    assert pool.depth([1, 2, 3]) == 3
    finished(pool, [7])
    assert pool.depth([1, 2, 3]) == 2  # its leaf, not its root


def test_what_runs_is_never_evicted() -> None:
    pool = BlockPool(4)
    holding = pool.admit([1, 2], 0, 3)
    assert holding is not None
    pool.store(holding, 2)
    assert pool.admit([5, 6], 0, 2) is None
    assert pool.depth([1, 2]) == 2
    pool.release(holding)
    assert pool.admit([5, 6], 0, 2) is not None


def test_two_that_compute_the_same_share_the_blocks() -> None:
    pool = BlockPool(8)
    one, other = pool.admit([1, 2, 3], 0, 4), pool.admit([1, 2, 3], 0, 4)
    assert one is not None
    assert other is not None
    assert pool.locked == 8
    pool.store(one, 3)
    pool.store(other, 3)
    assert pool.locked == 5  # three shared, and a block of output each
    pool.release(one)
    assert (pool.locked, pool.evictable) == (4, 0)
    pool.release(other)
    assert (pool.locked, pool.evictable) == (0, 3)


class PlainPool:
    """The rule in the plainest words: times of last use, and a search for the oldest leaf."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used: dict[tuple[int, ...], int] = {}
        self.time = 0

    def finish(self, path: tuple[int, ...]) -> None:
        depth = max(n for n in range(len(path) + 1) if n == 0 or path[:n] in self.used)
        kept = {path[:n] for n in range(1, depth + 1)}
        while len(self.used) + len(path) - depth > self.capacity:
            leaves = [
                node
                for node in self.used
                if node not in kept and not any(other[:-1] == node for other in self.used)
            ]
            del self.used[min(leaves, key=lambda node: (self.used[node], -len(node)))]
        self.time += 1
        for n in range(1, len(path) + 1):
            self.used[path[:n]] = self.time


paths = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple)


@given(prompts=st.lists(paths, max_size=30))
def test_it_keeps_what_a_plain_tree_keeps(prompts: list[tuple[int, ...]]) -> None:
    pool, plain = BlockPool(6), PlainPool(6)
    for prompt in prompts:
        ids = [hash(prompt[:n]) for n in range(1, len(prompt) + 1)]
        finished(pool, ids)
        plain.finish(prompt)
        assert {hash(node) for node in plain.used} == {
            block for node in plain.used if (block := hash(node)) in pool
        }
        assert pool.evictable == len(plain.used)


@given(prompts=st.lists(st.tuples(paths, st.integers(0, 2)), max_size=20), keep=st.integers(0, 3))
def test_it_never_holds_more_than_it_can(
    prompts: list[tuple[tuple[int, ...], int]], keep: int
) -> None:
    pool = BlockPool(10)
    running: list[Holding] = []
    for prompt, output in prompts:
        ids = [hash(prompt[:n]) for n in range(1, len(prompt) + 1)]
        holding = pool.admit(ids, pool.depth(ids), len(ids) + output)
        pool.check()
        if holding is not None:
            pool.store(holding, len(ids))
            running.append(holding)
        while len(running) > keep:
            pool.release(running.pop(0))
        pool.check()
