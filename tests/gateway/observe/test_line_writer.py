"""Lines reach their file, and never hold up who writes them."""

import os
import stat
import threading
from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.gateway.observe import line_writer
from radixgate.gateway.observe.line_writer import LineWriter


class Text:
    def __init__(self, text: str) -> None:
        self._text = text

    def encode(self) -> bytes:
        return self._text.encode() + b"\n"


class Stuck:
    """Takes until it is let go, as a write to a disk that hangs does."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def encode(self) -> bytes:
        self.begun.set()
        assert self.go.wait(20)
        return b"stuck\n"


class Wrong:
    def encode(self) -> bytes:
        raise ValueError("no words for it")


def test_lines_are_appended_in_order(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    writer = LineWriter(str(path))
    for number in range(1_000):
        writer.put(Text(str(number)), 10)
    writer.close()
    assert path.read_text().splitlines() == ["before", *map(str, range(1_000))]
    assert writer.dropped == 0


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    LineWriter(str(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_beyond_the_bound_lines_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_writer, "MAX_WAITING_BYTES", 100)
    path, stuck = tmp_path / "log", Stuck()
    writer = LineWriter(str(path))
    writer.put(stuck, 50)
    assert stuck.begun.wait(20)
    for number in range(8):
        writer.put(Text(str(number)), 10)
    assert writer.dropped == 3
    stuck.go.set()
    writer.close()
    assert path.read_text().splitlines() == ["stuck", *"01234"]
    assert writer.dropped == 3


def test_a_file_that_was_moved_away_is_begun_anew_with_a_heading(tmp_path: Path) -> None:
    path = tmp_path / "log"
    writer = LineWriter(str(path), heading=lambda: b"goes on\n")
    stuck = Stuck()
    writer.put(Text("one"), 1)
    writer.put(stuck, 1)
    assert stuck.begun.wait(20)
    os.rename(path, tmp_path / "old")
    stuck.go.set()
    writer.reopen()
    writer.put(Text("two"), 1)
    writer.close()
    whole = (tmp_path / "old").read_text() + path.read_text()
    assert whole.splitlines()[:2] == ["one", "stuck"]
    assert "goes on" in path.read_text()
    assert sorted(whole.splitlines()) == ["goes on", "one", "stuck", "two"]


def test_what_the_disk_refuses_is_dropped() -> None:
    writer = LineWriter("/dev/full")
    for _ in range(3):
        writer.put(Text("x"), 1)
    writer.close()
    assert writer.dropped == 3


def test_a_line_that_cannot_be_put_in_words_is_only_itself_lost(tmp_path: Path) -> None:
    path = tmp_path / "log"
    writer = LineWriter(str(path))
    writer.put(Wrong(), 1)
    writer.put(Text("next"), 1)
    writer.close()
    assert path.read_text() == "next\n"
    assert writer.dropped == 1


def test_a_file_that_cannot_be_had_is_a_setting_that_cannot_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write to"):
        LineWriter(str(tmp_path / "no" / "log"))


def test_a_pipe_that_nobody_reads_is_said_and_one_that_is_read_gets_all(tmp_path: Path) -> None:
    """To open one is to wait for its reader; a gateway that waits has not begun to listen."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="pipe: No such device or address"):
        LineWriter(str(pipe))
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = LineWriter(str(pipe))
    os.set_blocking(reader, True)
    for number in range(20_000):  # more than a pipe holds, which is not the disk's refusal
        writer.put(Text(f"{number:08}"), 10)
    with os.fdopen(reader, "rb") as lines:
        assert [int(lines.readline()) for _ in range(20_000)] == list(range(20_000))
        writer.close()
        assert (lines.read(), writer.dropped) == (b"", 0)


def test_after_closing_nothing_is_taken(tmp_path: Path) -> None:
    writer = LineWriter(str(tmp_path / "log"))
    writer.close()
    writer.put(Text("late"), 1)
    assert writer.dropped == 1
