"""What each eviction policy throws out first, and that its rank never goes stale."""

import pytest

from small_engine import SmallEngine

POLICIES = ["lru", "lfu", "slru", "fifo", "mru", "filo", "priority"]


def prompt(name: int) -> list[int]:
    return [name] * 9  # two pages of 4, and a token that is always computed


def kept(engine: SmallEngine) -> set[int]:
    """Which of the prompts 1, 2, 3 are cached, looked up without being used."""
    cache = engine.core._memory._cache
    tokens = {name: b"".join(t.to_bytes(4, "little") for t in prompt(name)) for name in (1, 2, 3)}
    (namespace,) = cache._roots
    return {name for name, packed in tokens.items() if cache.cached_tokens(namespace, packed) == 8}


@pytest.mark.parametrize(
    ("policy", "first_out"),
    [
        # 1: old, used three times; 2: used twice, last of all; 3: new, used once, important.
        pytest.param("lru", 1, id="lru"),
        pytest.param("lfu", 3, id="lfu"),
        pytest.param("slru", 3, id="slru"),
        pytest.param("fifo", 1, id="fifo"),
        pytest.param("mru", 2, id="mru"),
        pytest.param("filo", 3, id="filo"),
        pytest.param("priority", 1, id="priority"),
    ],
)
def test_the_first_to_go_is_the_one_the_policy_names(policy: str, first_out: int) -> None:
    engine = SmallEngine(pages=9, radix_eviction_policy=policy)
    engine.answer(prompt(1), max_tokens=1)
    engine.answer(prompt(1), max_tokens=1)
    engine.answer(prompt(2), max_tokens=1)
    engine.answer(prompt(1), max_tokens=1)
    engine.answer(prompt(3), max_tokens=1, priority=5)
    engine.answer(prompt(2), max_tokens=1)
    assert kept(engine) == {1, 2, 3}
    engine.answer([9] * 13, max_tokens=1)  # needs four pages, three are free
    assert kept(engine) == {1, 2, 3} - {first_out}
    engine.check_idle()


def test_a_retry_or_a_further_choice_is_no_use() -> None:
    engine = SmallEngine(pages=40, radix_eviction_policy="lfu")
    engine.answer(prompt(1), max_tokens=1, n=3, temperature=1.0)
    (root,) = engine.core._memory._cache._roots.values()
    (node,) = root.children.values()
    assert node.uses == 1
    engine.answer(prompt(1), max_tokens=1)
    assert node.uses == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_a_prefix_is_as_important_as_its_most_important_user(policy: str) -> None:
    engine = SmallEngine(pages=40, radix_eviction_policy=policy)
    engine.answer([1] * 13, max_tokens=1, priority=-2)
    (root,) = engine.core._memory._cache._roots.values()
    (node,) = root.children.values()
    assert node.priority == -2
    engine.answer([1] * 4 + [2] * 9, max_tokens=1, priority=3)
    (trunk,) = root.children.values()
    assert (trunk.priority, sorted(c.priority for c in trunk.children.values())) == (3, [-2, 3])
    engine.check_idle()
