"""The right word nearest to a wrong one."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, right: Iterable[str]) -> str:
    """The member of `right` that looks most like `word`, however little; empty if there is none."""
    return next(iter(get_close_matches(word, list(right), n=1, cutoff=0.0)), "")
