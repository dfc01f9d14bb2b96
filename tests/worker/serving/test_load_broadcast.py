"""What a gateway is told of this worker's load, and of its own part of it."""

from clocks import FakeClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.engine import Engine
from radixgate.worker.serving.load_broadcast import LoadBroadcast
from small_engine import Ear, SmallEngine


def report(engine: SmallEngine, asker: Ear | None) -> pb.LoadReport:
    told = Engine(engine.core, FakeClock())
    return LoadBroadcast(told, FakeClock(), weight_version="v", instance_id="i").report(asker)


def seen(engine: SmallEngine, asker: Ear | None) -> int | None:
    told = report(engine, asker)
    return told.seen_number if told.HasField("seen_number") else None


def test_each_gateway_is_told_up_to_which_of_its_numbers_the_figures_count() -> None:
    engine, mine, yours = SmallEngine(), Ear(), Ear()
    engine.submit(mine, 1, [1] * 20, number=7)
    engine.submit(yours, 1, [2] * 30, number=3)
    engine.submit(mine, 2, [3] * 10, number=9)
    told = report(engine, mine)
    assert (told.queued_uncached_tokens, told.queued_uncached_tokens_yours) == (60, 30)
    assert (seen(engine, mine), seen(engine, yours)) == (9, 3)


def test_the_number_stays_when_its_request_has_ended() -> None:
    engine, mine = SmallEngine(), Ear()
    engine.submit(mine, 1, [1] * 8, number=7, max_tokens=1)
    engine.run()
    assert (mine.finish(1), seen(engine, mine)) == ("LENGTH", 7)


def test_who_gives_no_numbers_is_told_none() -> None:
    engine, mine = SmallEngine(), Ear()
    engine.submit(mine, 1, [1] * 8)
    assert seen(engine, mine) is None
    assert seen(engine, None) is None


def test_what_a_gateway_that_left_had_sent_is_forgotten() -> None:
    engine, mine = SmallEngine(), Ear()
    engine.submit(mine, 1, [1] * 8, number=7)
    engine.core.detach(mine)
    assert (seen(engine, mine), engine.core.stats().seen_by_sink) == (None, {})
