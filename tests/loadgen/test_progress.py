"""Progress says rate, TTFT and errors, live on a terminal and by lines elsewhere."""

import pytest

from clocks import FakeClock
from radixgate.loadgen.progress import (
    BarProgress,
    LineProgress,
    NoProgress,
    RequestEnd,
    RunSoFar,
    open_progress,
)


def test_the_tally_counts_and_averages_recent_ttfts() -> None:
    clock = FakeClock()
    tally = RunSoFar(10, clock)
    assert tally.text == "0.0 req/s  TTFT -  errors 0"
    clock.advance(2.0)
    tally.note(RequestEnd(failed=False, ttft_s=0.1))
    tally.note(RequestEnd(failed=False, ttft_s=0.3))
    tally.note(RequestEnd(failed=True, ttft_s=9.0))
    assert tally.text == "1.5 req/s  TTFT 200 ms  errors 1"


def test_the_shown_ttft_is_of_the_last_fifty() -> None:
    tally = RunSoFar(1000, FakeClock())
    for seconds in [9.0] * 100 + [0.5] * 50:
        tally.note(RequestEnd(failed=False, ttft_s=seconds))
    assert "TTFT 500 ms" in tally.text


def test_lines_come_every_five_seconds_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    lines = LineProgress(4, clock)
    for _ in range(4):
        clock.advance(3.0)
        lines.note(RequestEnd(failed=False, ttft_s=0.1))
    lines.close()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [line.split()[0] for line in shown.err.splitlines()] == ["2/4", "4/4", "4/4"]


@pytest.mark.parametrize(
    ("shown", "terminal", "kind"),
    [
        pytest.param(False, True, NoProgress, id="silenced"),
        pytest.param(True, False, LineProgress, id="no-terminal"),
        pytest.param(True, True, BarProgress, id="terminal"),
    ],
)
def test_what_fits_where_it_goes(shown: bool, terminal: bool, kind: type) -> None:
    progress = open_progress(2, FakeClock(), shown=shown, terminal=terminal)
    progress.note(RequestEnd(failed=False, ttft_s=0.1))
    progress.close()
    assert isinstance(progress, kind)
