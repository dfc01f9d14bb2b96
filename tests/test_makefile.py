"""What makes an environment stale, so that `make` installs again."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
STAMPS = (".venv/installed", ".venv/installed-dev")


@pytest.mark.parametrize("target", ["install", "install-dev"])
@pytest.mark.parametrize(
    ("edited", "stale"),
    [
        (None, False),
        ("pyproject.toml", True),
        ("constraints.txt", True),
        ("proto/chained_compiled.c", True),
        ("policies/cheapest_compiled.c", True),
        ("radix_mirror/walk_compiled.c", True),
        ("gateway/heads/chunks_compiled.c", True),
        ("proto/chained.py", False),
    ],
)
def test_an_edit_of_what_is_installed_makes_it_stale(
    tmp_path: Path, target: str, edited: str | None, stale: bool
) -> None:
    shutil.copy(MAKEFILE, tmp_path)
    for name in (
        "pyproject.toml",
        "constraints.txt",
        "proto/chained_compiled.c",
        "policies/cheapest_compiled.c",
        "radix_mirror/walk_compiled.c",
        "gateway/heads/chunks_compiled.c",
    ):
        _write(tmp_path / name, at_s=1)
    for stamp in (".venv/bin/python", *STAMPS):
        _write(tmp_path / stamp, at_s=2)
    if edited is not None:
        _write(tmp_path / edited, at_s=3)
    asked = subprocess.run(("make", "--question", target, "PYTHON=python3"), cwd=tmp_path)
    assert asked.returncode == stale


def _write(path: Path, at_s: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (at_s, at_s))
