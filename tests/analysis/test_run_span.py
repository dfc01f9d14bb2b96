"""The time that every rate of a run is of."""

import pytest

from radixgate.analysis.records import ABANDONED, RequestRecord
from radixgate.analysis.run_span import run_span_s
from request_records import record

GOOD = record((3.0, 1), sent=1.0)


@pytest.mark.parametrize(
    ("records", "span_s"),
    [
        pytest.param([], (0.0, 0.0), id="nothing"),
        pytest.param([record(sent=2.0, end=9.0, failure="refused")], (2.0, 2.0), id="no-success"),
        pytest.param([GOOD], (1.0, 3.0), id="to-the-last-success"),
        pytest.param([GOOD, record(sent=5.0, failure="refused")], (1.0, 5.0), id="died-half-way"),
        pytest.param([GOOD, record(sent=2.0, end=600.0, failure="timeout")], (1.0, 3.0), id="hung"),
        pytest.param([GOOD, record(sent=5.0, failure=ABANDONED)], (1.0, 3.0), id="given-up"),
        pytest.param([GOOD, record(sent=0.5, failure="refused")], (0.5, 3.0), id="failed-first"),
    ],
)
def test_from_the_first_dispatch_to_the_last_that_counts(
    records: list[RequestRecord], span_s: tuple[float, float]
) -> None:
    assert run_span_s(records) == span_s
