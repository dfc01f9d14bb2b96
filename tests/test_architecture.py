"""The rules of the house, checked."""

import importlib
import pkgutil
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import radixgate

ROOT = Path(__file__).parents[1]
INSIDE = ROOT / "src/radixgate"
FOLDERS = {
    "analysis",
    "configs",
    "fleet",
    "gateway",
    "loadgen",
    "policies",
    "proto",
    "radix_mirror",
    "text",
    "worker",
}
# Extras: a module that needs one may fail to import without it.
OPTIONAL = {"flashinfer", "opentelemetry", "triton", "zmq"}
LONGEST = 300
LONG: dict[str, str] = {}  # path -> why it is longer
# Whatever holds many ideas under such a name should be several files.
NO_IDEA = {"utils", "helpers", "common", "manager", "managers", "mixins", "misc"}
STUBS = ("worker_pb2.py", "worker_pb2.pyi", "worker_pb2_grpc.py")


def sources() -> list[Path]:
    """Our own modules, each once and by its real path; tests and generated stubs are not ours."""
    tops = [INSIDE, *(ROOT / folder for folder in sorted(FOLDERS))]
    files = [file for top in tops for file in sorted(top.rglob("*.py"))]
    return [file for file in files if "generated" not in file.parts and not behind_a_link(file)]


def behind_a_link(file: Path) -> bool:
    return file.is_relative_to(INSIDE) and file.parent != INSIDE


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.slow
def test_every_module_imports() -> None:
    names = [module.name for module in pkgutil.walk_packages(radixgate.__path__, "radixgate.")]
    lacking = {name: missing_for(name) for name in names}
    missing = {name: lack for name, lack in lacking.items() if lack not in {None, *OPTIONAL}}
    assert missing == {}


def missing_for(module: str) -> str | None:
    """The module whose absence keeps this one from being imported; None if nothing does."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as missing:
        return missing.name
    return None


def test_the_distribution_owns_one_name() -> None:
    owners = packages_distributions().items()
    owned = {top for top, dists in owners if "radixgate" in dists and not top.startswith("_")}
    assert owned <= {"radixgate"}


def test_each_folder_is_linked() -> None:
    links = [path for path in INSIDE.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert {link.name for link in links} == FOLDERS
    for link in links:
        assert link.readlink() == Path("../..", link.name)


def test_the_sources_are_found() -> None:
    names = {name_of(file) for file in sources()}
    assert {"src/radixgate/cli.py", "configs/load.py", "proto/blocks.py"} <= names


def test_files_stay_small() -> None:
    lengths = {name_of(file): len(file.read_text().splitlines()) for file in sources()}
    too_long = {name: lines for name, lines in lengths.items() if lines > LONGEST}
    assert too_long.keys() == LONG.keys(), too_long


def test_files_are_named_after_an_idea() -> None:
    assert not [name_of(file) for file in sources() if file.stem in NO_IDEA]


def test_every_module_opens_with_its_docstring() -> None:
    assert [name_of(file) for file in sources() if not file.read_text().startswith('"""')] == []


def test_only_the_loader_reads_the_environment() -> None:
    reading = re.compile(r"\bos\.(environ|getenv)\b|^from os import .*\b(environ|getenv)\b", re.M)
    readers = [name_of(file) for file in sources() if reading.search(file.read_text())]
    assert readers == ["configs/load.py"]


@pytest.mark.slow
def test_generated_stubs_are_current(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "grpc_tools.protoc", "-Iradixgate/proto/generated=proto")
    outputs = (f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python"))
    subprocess.run((*command, *outputs, "proto/worker.proto"), cwd=ROOT, check=True)
    for stub in STUBS:
        made = tmp_path / "radixgate/proto/generated" / stub
        committed = ROOT / "proto/generated" / stub
        assert made.read_text() == committed.read_text(), f"{stub} is stale: run `make proto`"
