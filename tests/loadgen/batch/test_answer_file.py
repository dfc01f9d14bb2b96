"""The output of a batch survives whatever ended the process before."""

import errno
import os
from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.batch.answer_file import AnswerFile

WHOLE = b'{"custom_id": "a"}\n{"custom_id": "b"}\n'


async def written(path: Path, *ids: str) -> None:
    answers = AnswerFile(path)
    for custom_id in ids:
        await answers.append(custom_id, b'{"custom_id": "%s"}' % custom_id.encode())
    await answers.close()


async def test_lines_are_appended_and_known_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.jsonl"
    await written(path, "a", "b")
    assert path.read_bytes() == WHOLE
    answers = AnswerFile(path)
    assert answers.done == {"a", "b"}
    assert answers.repaired_bytes == 0
    await answers.close()


@pytest.mark.parametrize("kept", range(len(WHOLE) + 1))
async def test_cut_anywhere_the_whole_lines_are_kept(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(WHOLE[:kept])
    whole = WHOLE[: WHOLE[:kept].rfind(b"\n") + 1]
    answers = AnswerFile(path)
    assert len(answers.done) == whole.count(b"\n")
    assert answers.repaired_bytes == kept - len(whole)
    await answers.close()
    assert path.read_bytes() == whole
    await written(path, *sorted({"a", "b"} - answers.done))
    assert path.read_bytes() == WHOLE


async def test_a_last_line_of_zeros_as_after_a_power_cut_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(WHOLE + b"\0" * 20)
    answers = AnswerFile(path)
    assert answers.done == {"a", "b"}
    await answers.close()
    assert path.read_bytes() == WHOLE


async def test_another_kind_of_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(b"dear reader\nyours\n")
    with pytest.raises(ConfigError, match=r"letter.txt:1: no line of a batch"):
        AnswerFile(path)
    assert path.read_bytes() == b"dear reader\nyours\n"


async def test_an_answer_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(WHOLE + WHOLE)
    with pytest.raises(ConfigError, match=r":3: 'a' stands a second time"):
        AnswerFile(path)
    path.unlink()
    answers = AnswerFile(path)
    await answers.append("a", b'{"custom_id": "a"}')
    with pytest.raises(ConfigError, match="already has an answer"):
        await answers.append("a", b'{"custom_id": "a"}')
    await answers.close()


async def test_only_one_process_writes(tmp_path: Path) -> None:
    answers = AnswerFile(tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="another process is writing"):
        AnswerFile(tmp_path / "out.jsonl")
    await answers.close()


async def test_a_full_disk_is_named_and_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    await written(path, "a")
    answers = AnswerFile(path)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigError, match=r"^--output .* cannot be written: No space.* is kept"):
        await answers.append("b", b'{"custom_id": "b"}')
    await answers.close()
    assert path.read_bytes() == b'{"custom_id": "a"}\n'
