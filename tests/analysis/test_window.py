"""The steady window leaves out ramps and tails, and Little's law is checked in it."""

import pytest

from radixgate.analysis.records import RequestRecord
from radixgate.analysis.window import in_flight_over, steady_window
from request_records import record


def constant(count: int, gap_s: float, service_s: float) -> list[RequestRecord]:
    return [
        record((gap_s * n + service_s, 2), sent=gap_s * n, due=gap_s * n, index=n)
        for n in range(count)
    ]


def test_an_even_load_is_steady_and_littles_law_holds() -> None:
    window = steady_window(constant(1000, 0.1, 0.5), open_loop=True)
    assert window is not None
    assert window.steady
    assert window.in_flight == pytest.approx(5.0, rel=0.02)
    assert window.request_rate == pytest.approx(10.0, rel=0.02)
    assert window.output_token_rate == pytest.approx(20.0, rel=0.02)


def test_a_queue_that_only_grows_is_not_steady() -> None:
    growing = [record((0.5 * (n + 1), 1), sent=0.1 * n, due=0.1 * n, index=n) for n in range(60)]
    window = steady_window(growing, open_loop=True)
    assert window is not None
    assert not window.steady
    assert window.little_error > 0.02


def test_a_closed_loop_leaves_the_drain_of_its_longest_out() -> None:
    full = [record((n + 1.0, 1), sent=float(n), index=n) for n in range(40) for _ in range(4)]
    tail = record((100.0, 1), sent=39.0, index=999)
    window = steady_window([*full, tail], open_loop=False)
    assert window is not None
    assert window.start_s == pytest.approx(0.0)
    assert window.end_s == pytest.approx(40.0, abs=1.01)
    assert window.in_flight == pytest.approx(4.0, rel=0.1)


def test_in_flight_is_an_average_over_each_part() -> None:
    assert in_flight_over([record((3.0, 1), sent=1.0)], 0.0, 4.0, 4) == [0.0, 1.0, 1.0, 0.0]
    assert in_flight_over([record((0.75, 1), sent=0.25)], 0.0, 1.0, 2) == [0.5, 0.5]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([], id="nothing"),
        pytest.param([record(failure="timeout")], id="no-success"),
        pytest.param([record((0.0, 1))], id="no-time"),
    ],
)
def test_nothing_to_see_is_no_window(records: list[RequestRecord]) -> None:
    assert steady_window(records, open_loop=True) is None
    assert steady_window(records, open_loop=False) is None


def test_the_window_of_an_open_loop_goes_on_where_the_server_died() -> None:
    alive = constant(500, 0.1, 0.5)
    dead = [record(sent=0.1 * n, due=0.1 * n, failure="refused") for n in range(500, 1000)]
    window = steady_window([*alive, *dead], open_loop=True)
    assert window is not None
    assert window.end_s == pytest.approx(99.9)
    assert window.request_rate == pytest.approx(406 / 89.91, rel=0.01)
