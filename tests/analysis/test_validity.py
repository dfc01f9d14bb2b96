"""A run that measured its own client says so, and why."""

from dataclasses import replace

import pytest

from radixgate.analysis.validity import ClientHealth, Verdict, judge
from request_records import record

WELL = ClientHealth(0, 100, cpu_share=0.3, loop_lag_p99_s=0.001, loop_lag_max_s=0.02)


def judged(
    lag_s: float = 0.0,
    *,
    ttft_s: float = 0.1,
    client: ClientHealth = WELL,
    max_concurrency: int | None = None,
    stretch: float = 1.0,
) -> Verdict:
    """100 requests, one every 100 ms as intended, each `lag_s` late, sent `stretch` as slowly."""
    records = []
    for n in range(100):
        sent = 0.1 * n * stretch + lag_s
        records.append(
            replace(record((sent + ttft_s, 1), sent=sent, due=0.1 * n, index=n), session=f"s{n}")
        )
    return judge(records, [client], open_loop=True, max_concurrency=max_concurrency)


def test_a_clean_run_is_valid() -> None:
    found = judged()
    assert found.valid
    assert found.reasons == ()
    assert found.offered_rate == pytest.approx(10.0)
    assert found.achieved_rate == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param(judged(0.011), "P99 schedule lag 11.0 ms, over 10.0 ms", id="lag"),
        pytest.param(judged(stretch=1.02), "sent 9.80", id="rate"),
        pytest.param(judged(client=replace(WELL, loop_lag_p99_s=0.006)), "loop lag", id="loop"),
        pytest.param(judged(client=replace(WELL, cpu_share=0.81)), "81% of a core", id="cpu"),
        pytest.param(
            judged(3.0, max_concurrency=4), "--max-concurrency 4 held requests back", id="cap"
        ),
    ],
)
def test_each_rule_gives_its_reason(found: Verdict, reason: str) -> None:
    assert not found.valid
    assert reason in "; ".join(found.reasons)


def test_a_run_without_a_success_measured_nothing() -> None:
    failed = [replace(record((0.1, 1)), failure="refused")] * 3
    for open_loop in (True, False):
        found = judge(failed, [WELL], open_loop=open_loop, max_concurrency=None)
        assert found.reasons == ("none of 3 requests succeeded: nothing was measured",)


def test_a_process_without_a_request_spoils_nothing() -> None:
    busy = replace(WELL, cpu_share=1.0, loop_lag_p99_s=0.1)
    assert not judged(client=busy).valid
    assert judged(client=replace(busy, requests=0)).valid


def test_a_lag_may_be_a_hundredth_of_the_median_ttft() -> None:
    assert judged(0.019, ttft_s=2.0).valid
    assert not judged(0.021, ttft_s=2.0).valid


def test_a_closed_loop_has_no_times_to_keep_and_says_so() -> None:
    late = [record((5.0, 1), sent=4.0, due=0.0)]
    found = judge(late, [WELL], open_loop=False, max_concurrency=1)
    assert found.valid
    assert "closed loop" in found.notes[0]


def test_later_turns_do_not_count_as_sent_too_slowly() -> None:
    turns = [
        replace(record((9.0 * n + 1, 1), sent=9.0 * n, index=n), session="s", turn=n)
        for n in range(5)
    ]
    others = [
        replace(record((0.1 * n + 1, 1), sent=0.1 * n, due=0.1 * n, index=9 + n), session=f"t{n}")
        for n in range(20)
    ]
    assert judge([*turns, *others], [WELL], open_loop=True, max_concurrency=None).valid
