"""A simulated worker against what its cost model says, by hand."""

from dataclasses import replace

import pytest

from radixgate.proto.kv_events import Pending, Settled, Stored
from simulated import STUDY, Alone, request


def test_one_request_takes_what_the_model_says() -> None:
    alone = Alone()
    job = alone.send(request(10_000, output=4))
    alone.run()
    # Chunks of 4,096, 4,096 and 1,808 tokens, then three steps of one decoding sequence.
    prefill_s = 3 * 0.010 + 10_000 * 50e-6
    decode_s = sum(0.010 + 50e-6 + 15e-9 * context for context in (10_001, 10_002, 10_003))
    assert job.ttft_s == pytest.approx(prefill_s)
    assert job.e2e_s == pytest.approx(prefill_s + decode_s)
    assert job.tpot_s == pytest.approx(decode_s / 3)


def test_the_same_prompt_again_computes_its_last_block_and_no_more() -> None:
    alone = Alone()
    alone.send(request(5_120))
    again = alone.send(request(5_120), at_s=10.0)
    alone.run()
    # Ten whole blocks are stored, but the last token is always computed, and with it its block.
    assert again.cached_tokens == 9 * 512
    assert again.ttft_s == pytest.approx(0.010 + 512 * 50e-6)


def test_prompts_are_computed_in_order_and_share_a_step() -> None:
    alone = Alone()
    first, second = alone.send(request(3_000)), alone.send(request(3_000, first=100))
    alone.run()
    assert first.ttft_s == pytest.approx(0.010 + 3_000 * 50e-6)
    # The first step began before the second prompt was there.
    assert second.ttft_s == pytest.approx(first.ttft_s + 0.010 + 3_000 * 50e-6)


def test_who_decodes_slows_the_others_down() -> None:
    alone = Alone()
    alone.send(request(1_000, output=100))
    late = alone.send(request(1_000, first=100), at_s=1.0)
    alone.run()
    assert late.ttft_s > STUDY.step_time(1_000, 1, 1_000)


def test_a_job_without_room_waits_for_it_and_so_do_those_behind() -> None:
    alone = Alone(kv_blocks=10)
    long = alone.send(request(4_000, output=50))
    big, small = alone.send(request(4_000, first=100)), alone.send(request(600, first=200))
    alone.run()
    assert big.first_s > long.ended_s
    assert small.first_s >= big.first_s


def test_an_answer_of_one_token_ends_with_its_prompt() -> None:
    alone = Alone()
    job = alone.send(request(100, output=1))
    alone.run()
    assert job.ended_s == job.first_s
    assert job.tpot_s is None


def test_it_reports_what_it_does() -> None:
    alone = Alone()
    events: list[object] = []
    alone.worker.on_events = events.extend
    alone.send(request(1_100))
    alone.run()
    assert events == [Pending(1, 0, range(1, 3)), Stored(0, [1, 2]), Settled(1)]
    report = alone.worker.load_report(0)
    assert (report.running, report.waiting, report.queued_uncached_tokens) == (0, 0, 0)
    assert report.prefill_tokens_total == 1_100
    assert (report.kv_tokens_used, report.kv_tokens_evictable) == (0, 1_024)


def test_it_reports_up_to_which_lease_of_a_gateway_it_has_been_sent_jobs() -> None:
    alone = Alone()
    assert alone.worker.load_report(0).seen_number is None
    alone.send(request(4_000)).lease = 7
    late = alone.send(request(4_000, first=100), at_s=0.1)
    late.lease, late.gateway = 3, 1
    alone.run()
    seen = [alone.worker.load_report(gateway).seen_number for gateway in (0, 1, 2)]
    assert seen == [7, 3, None]


def test_its_speed_is_that_of_its_steps() -> None:
    alone = Alone()
    alone.send(request(4_096))
    alone.run()
    report = alone.worker.load_report(0)
    assert report.prefill_busy_us_total == pytest.approx(1e6 * (0.010 + 4_096 * 50e-6), abs=1)


def test_a_worker_beside_which_another_computes_as_its_step_begins_takes_longer() -> None:
    alone = Alone(engine=replace(STUDY, neighbour_share=0.5))
    alone.worker.neighbours = lambda: int(alone.timeline.now() < 1.0)
    beside, quiet = alone.send(request(1_000)), alone.send(request(1_000, first=100), at_s=1.0)
    alone.run()
    assert quiet.ttft_s == pytest.approx(0.010 + 1_000 * 50e-6)
    assert beside.ttft_s == pytest.approx(1.5 * quiet.ttft_s)
