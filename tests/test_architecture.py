"""The rules of the house, checked."""

import importlib
import pkgutil
from importlib.metadata import packages_distributions
from pathlib import Path

import radixgate

ROOT = Path(__file__).parents[1]
# Grows as the folders come to exist.
FOLDERS = {
    "proto",
    "text",
    "configs",
    "radix_mirror",
    "policies",
    "fleet",
    "gateway",
    "worker",
    "loadgen",
}
OPTIONAL = {
    "triton",
    "flashinfer",
    "zmq",
}  # extras: a module that needs one may fail to import without it
LONG: dict[str, str] = {}  # path -> why it is longer than 300 lines


def test_every_module_imports() -> None:
    for module in pkgutil.walk_packages(radixgate.__path__, "radixgate."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            assert missing.name in OPTIONAL, module.name


def test_the_distribution_owns_one_name() -> None:
    owners = packages_distributions().items()
    owned = {top for top, dists in owners if "radixgate" in dists and not top.startswith("_")}
    assert owned <= {"radixgate"}


def test_each_folder_is_linked() -> None:
    inside = (ROOT / "src/radixgate").iterdir()
    assert {p.name for p in inside if p.is_dir() and p.name != "__pycache__"} == FOLDERS


def test_files_stay_small() -> None:
    files = (p for d in FOLDERS for p in (ROOT / d).rglob("*.py") if "generated" not in p.parts)
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in files}
    assert not {name for name, lines in lengths.items() if lines > 300 and name not in LONG}
