"""Reports off the wire, and the speed that their totals give."""

import pytest

from books import report
from radixgate.fleet.load_report import LoadReport, PrefillSpeed, report_from_pb
from radixgate.proto.generated import worker_pb2 as pb


def test_a_report_is_read_field_by_field() -> None:
    message = pb.LoadReport(
        running=1,
        waiting=2,
        queued_uncached_tokens=3,
        queued_uncached_tokens_yours=4,
        kv_tokens_used=5,
        kv_tokens_evictable=6,
        kv_tokens_total=20,
        prefill_tokens_total=8,
        prefill_busy_us_total=9,
        decode_step_s=0.0,
        paused=True,
        phase="draining",
        weight_version="v2",
        instance_id="i",
        seen_number=12,
    )
    read = report_from_pb(message)
    assert (read.running, read.waiting) == (1, 2)
    assert (read.queued_uncached_tokens, read.queued_uncached_tokens_yours) == (3, 4)
    assert (read.kv_tokens_used, read.kv_tokens_evictable, read.kv_tokens_total) == (5, 6, 20)
    assert (read.prefill_tokens_total, read.prefill_busy_us_total) == (8, 9)
    assert (read.paused, read.phase) == (True, "draining")
    assert (read.weight_version, read.instance_id) == ("v2", "i")
    assert (read.decode_step_s, read.seen_number) == (0.0, 12)


def test_what_is_absent_is_none() -> None:
    read = report_from_pb(pb.LoadReport())
    assert (read.decode_step_s, read.seen_number) == (None, None)


def busy(seconds: float, tokens: int) -> LoadReport:
    return report(prefill_busy_us_total=int(seconds * 1e6), prefill_tokens_total=tokens)


def speed_after(*totals: tuple[float, int]) -> float | None:
    speed = PrefillSpeed()
    for seconds, tokens in totals:
        speed.add(busy(seconds, tokens), 0.0)
    return speed.tokens_per_s


@pytest.mark.parametrize(
    ("totals", "speed"),
    [
        pytest.param([], None, id="no-report"),
        pytest.param([(5.0, 9_000)], None, id="one-total-is-no-difference"),
        pytest.param([(0, 0), (0.5, 1_000)], 2_000, id="two"),
        pytest.param([(0, 0), (0.005, 10)], None, id="too-short-to-tell"),
        pytest.param([(0, 0), (0.5, 1_000), (0.5, 1_000)], 2_000, id="idle-since"),
        pytest.param(
            [(0, 0), (1, 9_000), (2, 10_000), (3, 12_000)], 2_000, id="the-last-busy-second"
        ),
        pytest.param(
            [(0, 0), (0.4, 9_000), (0.8, 9_800), (1.4, 11_000)], 2_000, id="no-less-than-it"
        ),
        pytest.param([(5, 9_000), (0.1, 100), (0.6, 1_100)], 2_000, id="restarted"),
        pytest.param([(0, 0), (0.01, 20)], 2_000, id="just-long-enough"),
        pytest.param(
            [(0, 0), (0.4, 9_000), (0.8, 9_800), (1.2, 12_000)], 10_000, id="not-yet-a-second"
        ),
        pytest.param(
            [(0.5, 5_000_000), (1, 6_000_000)], 2_000_000, id="more-tokens-than-microseconds"
        ),
    ],
)
def test_speed_is_tokens_over_the_last_busy_second(
    totals: list[tuple[float, int]], speed: float | None
) -> None:
    assert speed_after(*totals) == speed


def test_memory_of_reports_is_bounded() -> None:
    speed = PrefillSpeed()
    for n in range(10_000):
        speed.add(report(prefill_busy_us_total=n * 10, prefill_tokens_total=n), 0.0)
    assert len(speed._samples) <= 64
