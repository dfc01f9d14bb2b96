"""The mirror on texts, one block a character."""

import random

import pytest

from text_mirror import TextMirror

ALPHABET = "abé日😀"
WORKERS = ("w1", "w2", "w3", "w4")


def test_m01_a_removed_worker_is_purged_and_comes_back_cold() -> None:
    mirror = TextMirror()
    mirror.insert("hello world", "w1")
    mirror.insert("hello there", "w2")
    assert mirror.match("hello world") == ({"w1"}, 11)

    mirror.mirror.remove_worker("w1")
    assert mirror.match("hello world") == ({"w2"}, 6)
    assert mirror.size("w1") == 0
    assert len(mirror.mirror) == len("hello there")

    mirror.add("w1")
    assert mirror.match("hello world") == ({"w2"}, 6)
    mirror.mirror.remove_worker("w1")
    mirror.mirror.remove_worker("w1")
    mirror.mirror.check()


@pytest.mark.parametrize(
    ("stored", "asked", "workers", "matched"),
    [
        pytest.param({"w1": "abcdef"}, "abcxyz!", {"w1"}, 3, id="part-of-an-edge"),
        pytest.param({"w1": "日本語テスト"}, "日本語AB", {"w1"}, 3, id="three-byte-characters"),
        pytest.param({"w2": "😀😁😂"}, "😀😁😃", {"w2"}, 2, id="shared-lead-bytes"),
        pytest.param({"w1": "abc", "w2": "abcdef"}, "abc", {"w1", "w2"}, 3, id="both"),
        pytest.param({"w1": "abc", "w2": "abcdef"}, "abcd", {"w2"}, 4, id="the-longer"),
        pytest.param({"w1": "abc", "w2": "abcdef"}, "", set(), 0, id="empty"),
        pytest.param({"w1": "abc", "w2": "abcdef"}, "zzz", set(), 0, id="nothing-in-common"),
    ],
)
def test_m03_matched_and_total_are_characters(
    stored: dict[str, str], asked: str, workers: set[str], matched: int
) -> None:
    mirror = TextMirror()
    for worker, text in stored.items():
        mirror.insert(text, worker)
    assert mirror.match(asked) == (workers, matched)
    assert mirror.ratio(asked) == (matched / len(asked) if asked else 0.0)


def common(left: str, right: str) -> int:
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


@pytest.mark.slow
def test_m03_tree_and_strings_agree_on_10000_sequences() -> None:
    rng = random.Random(3)
    for _ in range(10_000):
        mirror, held = TextMirror(), dict.fromkeys(WORKERS, frozenset[str]())
        for _ in range(rng.randint(1, 8)):
            worker = rng.choice(WORKERS)
            text = "".join(rng.choices(ALPHABET, k=rng.randint(0, 6)))
            if rng.random() < 0.2:
                mirror.mirror.remove_worker(worker)
                held[worker] = frozenset()
            elif rng.random() < 0.6:
                mirror.insert(text, worker)
                held[worker] |= {text}
            depths = {
                worker: max((common(text, other) for other in texts), default=0)
                for worker, texts in held.items()
            }
            assert mirror.depths(text) == {w: depth for w, depth in depths.items() if depth}
