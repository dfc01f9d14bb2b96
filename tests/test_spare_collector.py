"""A process that serves does not look through all it has loaded again and again."""

import gc
from collections.abc import Iterator

import pytest

from radixgate.spare_collector import spare_collector


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_is_there_is_in_no_collection() -> None:
    loaded = [[place] for place in range(1_000)]
    spare_collector()
    assert gc.get_freeze_count() >= len(loaded)
    assert all(one is not loaded for one in gc.get_objects())


def test_garbage_in_cycles_is_still_collected() -> None:
    spare_collector(after_objects=500)
    gc.collect()
    before = gc.get_stats()[0]["collected"]
    for _ in range(2_000):
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.get_stats()[0]["collected"] - before >= 1_000
