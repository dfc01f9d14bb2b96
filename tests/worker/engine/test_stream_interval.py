"""`--stream-interval`: tokens go out together, and nothing is lost or stuck."""

import pytest

from history_model import expected_greedy
from small_engine import Ear, SmallEngine


@pytest.mark.parametrize("interval", [1, 2, 4, 50])
def test_the_first_token_goes_at_once_and_the_rest_in_groups(interval: int) -> None:
    engine = SmallEngine(stream_interval=interval)
    ear = engine.answer([1, 2, 3], max_tokens=10, top_logprobs=1)
    assert ear.ids(1) == expected_greedy([1, 2, 3], 10)
    assert ear.finish(1) == "LENGTH"
    sizes = [len(item.token_ids) for item in ear.of(1)]
    assert sizes == {1: [1] * 10, 2: [1, 1, 2, 2, 2, 2], 4: [1, 3, 4, 2], 50: [1, 9]}[interval]
    assert all(len(item.logprobs) == len(item.token_ids) for item in ear.items)


def test_no_credit_is_waited_for_with_tokens_in_hand() -> None:
    engine = SmallEngine(stream_interval=100)
    ear = Ear()
    engine.submit(ear, 1, [1, 2, 3], max_tokens=20, n=3, credit=12)
    engine.run()
    heard = sum(len(ear.ids(1, choice)) for choice in range(3))
    assert heard == 12
    engine.core.add_credit(ear, 1, 100)
    engine.run()
    assert [ear.ids(1, choice) for choice in range(3)] == [expected_greedy([1, 2, 3], 20)] * 3


def test_an_abort_brings_what_was_held() -> None:
    engine = SmallEngine(stream_interval=100)
    ear = Ear()
    engine.submit(ear, 1, [1, 2, 3], max_tokens=20)
    for _ in range(6):
        engine.step()
    assert len(ear.ids(1)) == 1
    engine.core.abort(ear, 1, "enough")
    engine.deliver()
    assert ear.ids(1) == expected_greedy([1, 2, 3], 6)
    assert ear.counts(1).completion == 6
