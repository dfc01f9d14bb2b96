"""What makes an environment stale, so that `make` installs again."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
STAMPS = (".venv/installed", ".venv/installed-dev")
SOURCES = (
    "proto/chained_compiled.c",
    "policies/cheapest_compiled.c",
    "policies/columns_compiled.c",
    "radix_mirror/walk_compiled.c",
    "gateway/heads/chunks_compiled.c",
    "gateway/workers/stream_ends_compiled.c",
    "gateway/loop/row_compiled.c",
    "gateway/attempt/flow_compiled.c",
)
INCLUDED = ("radix_mirror/held.h",)


@pytest.mark.parametrize("target", ["install", "install-dev"])
@pytest.mark.parametrize(
    ("edited", "stale"),
    [
        (None, False),
        ("pyproject.toml", True),
        ("constraints.txt", True),
        *((source, True) for source in (*SOURCES, *INCLUDED)),
        ("proto/chained.py", False),
    ],
)
def test_an_edit_of_what_is_installed_makes_it_stale(
    tmp_path: Path, target: str, edited: str | None, stale: bool
) -> None:
    shutil.copy(MAKEFILE, tmp_path)
    for name in ("pyproject.toml", "constraints.txt", *SOURCES, *INCLUDED):
        _write(tmp_path / name, at_s=1)
    for stamp in (".venv/bin/python", *STAMPS):
        _write(tmp_path / stamp, at_s=2)
    if edited is not None:
        _write(tmp_path / edited, at_s=3)
    asked = subprocess.run(("make", "--question", target, "PYTHON=python3"), cwd=tmp_path)
    assert asked.returncode == stale


def test_what_could_not_be_compiled_is_told(tmp_path: Path) -> None:
    shutil.copy(MAKEFILE, tmp_path)
    for name in ("pyproject.toml", "constraints.txt", ".venv/bin/python", *SOURCES, *INCLUDED):
        _write(tmp_path / name, at_s=2)
    older, newer, *missing = SOURCES
    _write(tmp_path / older.replace(".c", ".abi3.so"), at_s=1)
    _write(tmp_path / newer.replace(".c", ".abi3.so"), at_s=3)
    installed = subprocess.run(
        ("make", "install", "PYTHON=python3", "PIP=true"),
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert installed.stderr.splitlines() == [
        f"{source} was not compiled: the same is done in Python, and slower"
        for source in (older, *missing)
    ]


def _write(path: Path, at_s: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (at_s, at_s))


def test_clean_removes_what_was_compiled(tmp_path: Path) -> None:
    """A stale module would be imported in place of the Python that stands beside it."""
    shutil.copy(MAKEFILE, tmp_path)
    run = subprocess.run(
        ["make", "-n", "clean"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    removed = run.stdout.split()
    assert [one for one in SOURCES if one.replace(".c", "*.so") not in removed] == []
