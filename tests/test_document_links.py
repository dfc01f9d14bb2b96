"""Where the documentation and the code send a reader is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
LINK = re.compile(r"\]\((?!https?:)([^()#\s]*)(?:#([^()\s]+))?\)")
NAMED = re.compile(r"\bdocs/[a-z_-]+\.md\b")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> Iterator[str]:
    """As a reader of Markdown names a heading: small, without signs, a dash for each blank."""
    for heading in HEADING.findall(BLOCK.sub("", page.read_text())):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_headings_are_named_as_links_name_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One: `two`, three\n\n```console\n# a remark\n```\n\n## The `--flag` of it\n")
    assert list(anchors(page)) == ["one-two-three", "the---flag-of-it"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for name, anchor in LINK.findall(page.read_text()):
        target = page.parent / name if name else page
        assert target.exists(), f"({name})"
        if anchor:
            assert anchor in set(anchors(target)), f"({name}#{anchor})"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_that_a_page_names_is_there(page: Path) -> None:
    for name in NAMED.findall(page.read_text()):
        assert (ROOT / name).exists(), name


def test_a_page_that_the_code_names_is_there() -> None:
    named = {(name, path) for path in CODE for name in NAMED.findall(path.read_text())}
    assert named
    assert {(name, path) for name, path in named if not (ROOT / name).exists()} == set()
