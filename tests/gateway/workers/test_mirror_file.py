"""Whether the mirror file can be written is known before anything is in it."""

from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.gateway.workers.mirror_file import MirrorFile


@pytest.mark.parametrize(
    ("where", "why"),
    [
        pytest.param("none/mirror", "No such file or directory", id="no-folder"),
        pytest.param("file/mirror", "Not a directory", id="below-a-file"),
        pytest.param(".", "Is a directory", id="a-folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_at_start(
    tmp_path: Path, where: str, why: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=f"cannot be written: {why}"):
        MirrorFile(str(tmp_path / where))


def test_the_trial_leaves_nothing_behind(tmp_path: Path) -> None:
    MirrorFile(str(tmp_path / "mirror"))
    assert list(tmp_path.iterdir()) == []
