"""The engine in its thread: what crosses between it and the loop."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from asking import submit
from history_model import expected_greedy
from loop_ear import LoopEar
from radixgate.clock import SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_events import KvEvent, Pending, Settled, Stored
from radixgate.worker.engine.engine import Engine
from small_engine import SmallEngine

FOREVER = 3_000  # tokens: longer than a test lasts


@pytest.fixture
def small() -> SmallEngine:
    return SmallEngine(clock=SystemClock(), pages=1024, context=4096, debug_checks=True)


@pytest.fixture
async def engine(small: SmallEngine) -> AsyncIterator[Engine]:
    engine = Engine(small.core, SystemClock(), threads=1)
    engine.start()
    yield engine
    engine.stop()
    small.core.check()
    assert small.core.stats().leaks_total == 0


async def test_two_receivers_hear_their_own_requests_though_handles_are_equal(
    engine: Engine,
) -> None:
    one, two = LoopEar(), LoopEar()
    engine.submit(one, submit(1, [1, 2, 3], max_tokens=5))
    engine.submit(two, submit(1, [4, 5, 6], max_tokens=5))
    await asyncio.gather(one.until_ended(1), two.until_ended(1))
    assert one.ids(1) == expected_greedy([1, 2, 3], 5)
    assert two.ids(1) == expected_greedy([4, 5, 6], 5)


async def test_one_delivery_a_step_has_everything(engine: Engine) -> None:
    ear = LoopEar()
    for handle in range(4):
        engine.submit(ear, submit(handle, [handle], max_tokens=5))
    await ear.until_ended(*range(4))
    assert len(ear.items) == 20
    assert ear.batches < 20


async def test_a_bad_request_is_refused_and_the_next_is_answered(engine: Engine) -> None:
    ear = LoopEar()
    engine.submit(ear, submit(1, [], max_tokens=1))
    engine.submit(ear, submit(2, [1], max_tokens=1))
    await ear.until_ended(1, 2)
    assert ear.refused[1].field == "input_ids"
    assert ear.finish(2) == "LENGTH"


async def test_w03_a_live_rid_is_taken_and_a_finished_one_is_free(engine: Engine) -> None:
    first, second = LoopEar(), LoopEar()
    engine.submit(first, submit(1, [1], rid="dup", max_tokens=3, credit=0))
    engine.submit(second, submit(1, [1], rid="dup", max_tokens=3))
    await second.until_ended(1)
    assert (second.refused[1].status, second.refused[1].field) == (409, "rid")
    engine.add_credit(first, 1, 10)
    await first.until_ended(1)
    assert first.finish(1) == "LENGTH"
    engine.submit(second, submit(2, [1], rid="dup", max_tokens=3))
    await second.until_ended(2)
    assert second.finish(2) == "LENGTH"


async def test_w03_an_aborted_rid_may_be_used_again(engine: Engine) -> None:
    ear = LoopEar()
    engine.submit(ear, submit(1, [1], rid="r2", max_tokens=FOREVER))
    assert engine.abort_rid("r2") == 1
    await ear.until_ended(1)
    engine.submit(ear, submit(2, [1], rid="r2", max_tokens=2))
    await ear.until_ended(2)
    assert (ear.finish(1), ear.finish(2)) == ("ABORT", "LENGTH")


async def test_w03_a_rid_is_matched_whole_unless_a_prefix_is_asked_for(engine: Engine) -> None:
    ear = LoopEar()
    for handle, rid in ((1, "req-1"), (10, "req-10"), (2, "other")):
        engine.submit(ear, submit(handle, [handle], rid=rid, max_tokens=FOREVER))
    assert engine.abort_rid("req-1") == 1
    await ear.until_ended(1)
    assert (ear.finish(10), ear.finish(2)) == (None, None)
    assert engine.abort_rid("req-", prefix=True) == 1
    await ear.until_ended(10)
    assert ear.finish(2) is None
    assert engine.abort_rid("nobody") == 0


async def test_w03_abort_all_says_how_many(engine: Engine) -> None:
    ear = LoopEar()
    for handle in range(5):
        engine.submit(ear, submit(handle, [handle], max_tokens=FOREVER))
    assert engine.abort_all() == 5
    await ear.until_ended(*range(5))
    assert {ear.finish(handle) for handle in range(5)} == {"ABORT"}
    assert engine.abort_all() == 0


async def test_who_leaves_hears_nothing_more_and_its_pages_come_back(engine: Engine) -> None:
    gone, stays = LoopEar(), LoopEar()
    engine.submit(gone, submit(1, [1, 2], rid="gone", max_tokens=FOREVER))
    await gone.until_tokens(1, 3)
    engine.detach(gone)
    heard = gone.batches
    engine.submit(stays, submit(1, [3], rid="gone", max_tokens=3))
    await stays.until_ended(1)
    assert stays.finish(1) == "LENGTH"
    assert gone.batches == heard
    assert engine.stats().running == 0
    assert engine.stats().pages.locked == 0
    engine.detach(gone)


async def test_credit_lets_a_request_go_on(engine: Engine) -> None:
    ear = LoopEar()
    engine.submit(ear, submit(1, [1, 2], max_tokens=10, credit=4))
    await ear.until_tokens(1, 4)
    engine.add_credit(ear, 1, 6)
    await ear.until_ended(1)
    assert ear.ids(1) == expected_greedy([1, 2], 10)


async def test_a_deadline_wakes_an_engine_in_which_nobody_can_go_on(engine: Engine) -> None:
    ear = LoopEar()
    engine.submit(ear, submit(1, [1, 2], max_tokens=10, credit=1, deadline_s=0.05))
    await ear.until_ended(1)
    assert (ear.ids(1), ear.finish(1)) == (expected_greedy([1, 2], 1), "ABORT")


async def test_listeners_hear_of_the_cache_before_the_answer_is_out(engine: Engine) -> None:
    events: list[KvEvent] = []
    cleared: list[bool] = []
    loads: list[int] = []
    engine.on_kv = events.extend
    engine.on_cleared = lambda: cleared.append(True)
    engine.on_load = lambda: loads.append(engine.stats().running)
    ear = LoopEar()
    engine.submit(ear, submit(1, list(range(9)), max_tokens=1))
    await ear.until_ended(1)
    assert [type(event) for event in events] == [Pending, Stored, Settled]
    assert loads
    assert await engine.flush() == (True, "the prefix cache was dropped")
    assert cleared == [True]
    assert engine.stats().pages.free == engine.stats().pages.total


async def test_a_flush_needs_an_idle_engine(engine: Engine) -> None:
    ear = LoopEar()
    engine.submit(ear, submit(1, [1], max_tokens=FOREVER))
    await ear.until_tokens(1, 1)
    done, message = await engine.flush()
    assert not done
    assert "1 running" in message


async def test_a_sink_that_fails_harms_nobody_else(engine: Engine) -> None:
    class Broken(LoopEar):
        def deliver(self, batch: pb.StepBatch) -> None:
            raise ZeroDivisionError("a bug of the receiver")

    broken, sound = Broken(), LoopEar()
    engine.submit(broken, submit(1, [1], max_tokens=3))
    engine.submit(sound, submit(1, [1], max_tokens=3))
    await sound.until_ended(1)
    assert sound.finish(1) == "LENGTH"


async def test_after_a_failed_pass_the_engine_goes_on(engine: Engine, small: SmallEngine) -> None:
    ear = LoopEar()
    small.model.fail_next = True
    engine.submit(ear, submit(1, [1], max_tokens=3))
    await ear.until_ended(1)
    assert ear.refused[1].status == 500
    engine.submit(ear, submit(2, [1], max_tokens=3))
    await ear.until_ended(2)
    assert ear.ids(2) == expected_greedy([1], 3)


async def test_after_an_error_of_the_engine_itself_it_goes_on_if_all_agrees(
    engine: Engine, small: SmallEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        monkeypatch.undo()
        raise ZeroDivisionError("a bug of ours")

    ear = LoopEar()
    monkeypatch.setattr(small.core, "_abort_overdue", broken)
    engine.submit(ear, submit(1, [1], max_tokens=3))
    await ear.until_ended(1)
    assert ear.refused[1].status == 500
    engine.submit(ear, submit(2, [1], max_tokens=3))
    await ear.until_ended(2)
    assert ear.finish(2) == "LENGTH"


async def test_an_engine_that_cannot_go_on_says_so_to_all(
    engine: Engine, small: SmallEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ear = LoopEar()
    monkeypatch.setattr(small.core, "recover", small.core.check)  # takes no argument: fails
    monkeypatch.setattr(small.core, "step", lambda: 1 // 0)
    engine.submit(ear, submit(1, [1], max_tokens=3))
    await ear.until_ended(1)
    assert ear.refused[1].status == 503
    assert not engine.alive
    engine.submit(ear, submit(2, [1], max_tokens=3))
    await ear.until_ended(2)
    assert ear.refused[2].status == 503
    assert await engine.flush() == (False, "the engine is not running")
    monkeypatch.undo()
    small.core.abort_all("so that the books agree")


async def test_stop_ends_every_request(small: SmallEngine) -> None:
    engine = Engine(small.core, SystemClock())
    engine.start()
    ear = LoopEar()
    engine.submit(ear, submit(1, [1], max_tokens=FOREVER))
    await ear.until_tokens(1, 2)
    engine.stop()
    await ear.until_ended(1)
    assert ear.of(1)[-1].finish.status == 503
    assert not engine.alive


async def test_an_engine_waits_for_a_loop_that_has_stalled(
    engine: Engine, small: SmallEngine
) -> None:
    ear = LoopEar()
    engine.submit(ear, submit(1, [1], max_tokens=FOREVER))
    await ear.until_tokens(1, 1)
    # The loop takes nothing while this coroutine does not yield. A pass has a token, and the engine
    # may be ahead of what was heard already.
    heard = len(ear.ids(1))
    while small.model.passes < heard + 60:
        pass
    for _ in range(10_000):
        assert small.model.passes < heard + 70, "it runs on and fills the memory"
    await ear.until_tokens(1, 100)
    engine.abort(ear, 1)
    await ear.until_ended(1)
