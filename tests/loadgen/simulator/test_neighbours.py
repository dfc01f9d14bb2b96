"""How many other workers had something to do, against spans that are known."""

import pytest

from radixgate.analysis.records import RequestRecord
from radixgate.loadgen.simulator.neighbours import Neighbours
from request_records import record

# Busy from 1 to 3, from 3 to 4 and from 6 to 7; the third overlaps the first.
SPANS = {"a": [(1.0, 3.0), (3.0, 4.0), (1.5, 2.0), (6.0, 7.0)], "b": [(0.0, 10.0)]}


@pytest.mark.parametrize(
    ("worker", "begins", "ends", "share"),
    [
        pytest.param("b", 0.0, 1.0, 0.0, id="before-any"),
        pytest.param("b", 1.0, 4.0, 1.0, id="spans-that-touch-or-overlap-count-once"),
        pytest.param("b", 3.0, 7.0, 0.5, id="half-of-it"),
        pytest.param("b", 6.5, 6.75, 1.0, id="inside-one"),
        pytest.param("b", 7.0, 9.0, 0.0, id="after-all"),
        pytest.param("b", 2.0, 2.0, 0.0, id="no-time"),
        pytest.param("a", 2.0, 12.0, 0.8, id="one-s-own-work-is-none"),
        pytest.param("c", 0.0, 10.0, 1.4, id="two-others"),
    ],
)
def test_other_workers_that_compute_are_counted_by_their_time(
    worker: str, begins: float, ends: float, share: float
) -> None:
    by_worker: dict[str | None, list[RequestRecord]] = {
        name: [record((last, 1), sent=first) for first, last in spans]
        for name, spans in SPANS.items()
    }
    assert Neighbours(by_worker).busy(worker, begins, ends) == pytest.approx(share)
