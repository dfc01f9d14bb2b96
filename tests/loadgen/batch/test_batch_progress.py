"""What a batch shows while it runs: rates of the last minute, and an end against the deadline."""

from datetime import datetime

import pytest

from clocks import FakeClock
from radixgate.loadgen.batch.answering import Answered
from radixgate.loadgen.batch.progress import (
    Bar,
    BatchTally,
    Lines,
    Silence,
    open_batch_progress,
)

GOOD = Answered(b"", ok=True, prompt_tokens=3, completion_tokens=20, overloads=0)
BAD = Answered(b"", ok=False, prompt_tokens=0, completion_tokens=0, overloads=0)
NOON = datetime(2026, 1, 1, 12, 0, 0)


def tally(clock: FakeClock, deadline_s: float | None = None) -> BatchTally:
    """Ten seconds with two answers each, one of them bad, of 100 lines; 10 were done before."""
    found = BatchTally(100, 10, clock, deadline_s)
    for second in range(10):
        clock.advance(1.0)
        found.note(GOOD)
        found.note(BAD if second == 4 else GOOD)
    return found


def test_rate_tokens_errors_and_the_expected_end() -> None:
    found = tally(FakeClock())
    assert found.done == 30
    # 70 lines are left at 2 a second.
    assert found.left_s() == pytest.approx(35.0)
    assert found.text(4, NOON) == (
        "2.00 lines/s  38 tokens/s  4 in flight  errors 1  ends 12:00:35"
    )


@pytest.mark.parametrize(
    ("deadline_s", "shown"),
    [
        pytest.param(60.0, "15 s before the deadline", id="in-time"),
        pytest.param(30.0, "15 s AFTER the deadline", id="too-late"),
    ],
)
def test_a_deadline_is_set_against_the_expected_end(deadline_s: float, shown: str) -> None:
    assert tally(FakeClock(), deadline_s).text(4, NOON).endswith(shown)


def test_what_was_long_ago_counts_in_no_rate() -> None:
    clock = FakeClock()
    found = tally(clock)
    clock.advance(600.0)
    found.note(GOOD)
    assert found.left_s() == pytest.approx(69 / (1 / 60))


def test_nothing_done_has_no_end() -> None:
    clock = FakeClock()
    assert "ends" not in BatchTally(5, 0, clock, 9.0).text(0, NOON)


def test_lines_come_every_five_seconds_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    found, lines = BatchTally(4, 0, clock, None), Lines()
    for _ in range(4):
        clock.advance(3.0)
        found.note(GOOD)
        lines.show(found, 1)
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == ["2/4", "4/4"]


def test_a_bar_can_be_drawn_and_silence_kept() -> None:
    found = tally(FakeClock())
    for progress in (Bar(100), Silence(), open_batch_progress(100, shown=False)):
        progress.show(found, 3)
        progress.close()
