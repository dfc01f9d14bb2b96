"""What the documentation tells people to type exists, and the page of settings is current."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from radixgate.commands import ENTRIES
from radixgate.configs.document import page
from radixgate.configs.load import load

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:console|bash|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Where each command of a code block stands, and its words."""
    for path in PAGES:
        for block in BLOCK.findall(path.read_text()):
            for words in split(block):
                yield f"{path.name}: {' '.join(words)[:60]}", words


def split(block: str) -> Iterator[list[str]]:
    """The words of each command; one may go on over lines, by a backslash or inside quotes."""
    pending = ""
    for line in block.replace("\\\n", " ").splitlines():
        pending += line.removeprefix("$ ") + "\n"
        try:
            words = shlex.split(pending, comments=True)
        except ValueError:  # a quotation that is still open
            continue
        pending = ""
        if words:
            yield words
    assert not pending, f"a quotation without end: {pending}"


DOCUMENTED = list(commands())
TO_MAKE = [pytest.param(words, id=at) for at, words in DOCUMENTED if words[0] == "make"]
TO_RUN = [
    pytest.param(words[1:], id=at) for at, words in DOCUMENTED if words[0].endswith("radixgate")
]


def test_the_page_of_settings_is_current() -> None:
    committed = (ROOT / "docs/configs.md").read_text()
    assert page(entry.command for entry in ENTRIES.values()) == committed, "run `make docs`"


@pytest.mark.parametrize("words", TO_MAKE)
def test_a_documented_target_of_make_exists(words: list[str]) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    asked = [word for word in words[1:] if "=" not in word]
    assert asked
    assert set(asked) <= targets


@pytest.mark.parametrize("words", TO_RUN)
def test_a_documented_command_has_the_flags_it_is_given(words: list[str]) -> None:
    words = words[: words.index("&")] if "&" in words else words
    assert words[0] in ENTRIES
    if "--help" not in words:
        load(ENTRIES[words[0]].command, words[1:], environ={})


@pytest.mark.parametrize("words", TO_RUN)
def test_no_documented_port_is_one_that_the_kernel_gives_to_clients(words: list[str]) -> None:
    """From 32768 on, on Linux: it may be in use by any connection just then."""
    ports = [int(port) for word in words for port in re.findall(r":(\d{4,5})\b", word)]
    ports += [int(b) for a, b in pairwise(words) if re.fullmatch("--(grpc-)?port", a)]
    assert all(port < 32_768 for port in ports), ports
