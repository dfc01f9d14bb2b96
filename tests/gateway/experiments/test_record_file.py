"""Records on their way to a file: bounded, counted, private, and whole."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiment_parts import at_once, declaration, line
from radixgate.analysis.experiments.records import ExperimentEnd, read_lines
from radixgate.errors import ConfigError
from radixgate.gateway.experiments import record_file as module
from radixgate.gateway.experiments.record_file import RecordFile, WriterThread, unfinished


def test_a_file_is_its_owners_and_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "new" / "try-1.jsonl"
    file = RecordFile(path, at_once, 10)
    file.put(declaration())
    file.close()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="cannot record to"):
        RecordFile(path, at_once, 10)


def test_lines_beyond_the_bounds_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[Callable[[], None]] = []
    file = RecordFile(tmp_path / "try-1.jsonl", later.append, 3)
    for _ in range(5):
        file.put_line(line())
    assert file.dropped == 2
    slow = RecordFile(tmp_path / "try-2.jsonl", later.append, 1_000)
    monkeypatch.setattr(module, "MOST_BUFFERED_BYTES", 100)
    slow.put_line(line())
    slow.put_line(line())
    assert slow.dropped == 1
    slow.put(declaration())  # what happens to the experiment is kept all the same
    slow.close()
    file.close()
    for work in later:
        work()
    kept = list(read_lines((tmp_path / "try-2.jsonl").read_bytes().splitlines(keepends=True)))
    assert kept == [line(), declaration()]


def test_a_disk_that_refuses_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RecordFile(tmp_path / "try-1.jsonl", at_once, 10)

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    file.put(declaration())
    file.flush()
    assert file.failure.endswith("No space left on device")
    monkeypatch.undo()
    file.close()


def test_one_without_its_last_line_was_cut_off(tmp_path: Path) -> None:
    assert unfinished(tmp_path, "try") is None
    thread = WriterThread()
    file = RecordFile(tmp_path / "try-1.jsonl", thread, 10)
    file.put(declaration())
    file.flush()
    thread.close()
    assert unfinished(tmp_path, "try") == tmp_path / "try-1.jsonl"
    assert unfinished(tmp_path, "other") is None
    (tmp_path / "try-again-1.jsonl").write_bytes(b"")
    assert unfinished(tmp_path, "try-again") == tmp_path / "try-again-1.jsonl"
    file.put(ExperimentEnd("try", 1.0, "finished"))
    file.close()
    thread.close()
    assert unfinished(tmp_path, "try") is None


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "try-1.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"cannot read .*try-1\.jsonl"):
        unfinished(tmp_path, "try")
