"""How long an experiment lasts, by its logbook."""

from pathlib import Path

from clocks import FakeClock
from experiment_parts import logbook
from radixgate.analysis.experiments.records import ExperimentEnd


def test_its_time_stands_still_once_it_has_ended(tmp_path: Path) -> None:
    clock = FakeClock()
    book = logbook(tmp_path, clock)
    clock.advance(5.0)
    assert book.lasted_s() == 5.0
    book.end(ExperimentEnd(book.name, book.now_s(), "finished", ""))
    clock.advance(60.0)
    assert (book.lasted_s(), book.now_s()) == (5.0, 65.0)
