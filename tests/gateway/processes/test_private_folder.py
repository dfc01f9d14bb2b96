"""The folder of a gateway's sockets: nobody else enters, and what cannot be is said at once."""

import stat
import tempfile
from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.gateway.processes.private_folder import PrivateFolder


def test_it_is_its_owner_s_alone_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = PrivateFolder()
    assert stat.S_IMODE(Path(folder.path).stat().st_mode) == 0o700
    Path(folder.path, "left").touch()
    folder.remove()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_too_deep_or_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(ConfigError, match="set TMPDIR to a shorter"):
        PrivateFolder().socket("admin.sock")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="set TMPDIR"):
        PrivateFolder()
