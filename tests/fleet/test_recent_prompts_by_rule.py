"""What is remembered of recent prompts, against the rule written out."""

import random

import pytest

from radixgate.fleet import recent_prompts
from radixgate.fleet.recent_prompts import REMEMBERED, RecentPrompt, RecentPrompts


def continues(prompt: RecentPrompt, older: RecentPrompt) -> bool:
    length = len(older.ids)
    if length == len(prompt.ids) and older.mark != prompt.mark:
        return False
    return 0 < length <= len(prompt.ids) and older.ids[-1] == prompt.ids[length - 1]


class ByRule:
    """Looks at every prompt."""

    def __init__(self) -> None:
        self.prompts: list[RecentPrompt] = []

    def add(self, prompt: RecentPrompt) -> None:
        if not prompt.ids:
            return
        continued = [older for older in self.prompts if continues(prompt, older)]
        if continued:
            self.prompts.remove(max(continued, key=lambda older: len(older.ids)))
        elif len(self.prompts) == REMEMBERED:
            del self.prompts[0]
        self.prompts.append(prompt)

    def share(self, prompt: RecentPrompt, depth: int) -> float:
        if not 0 < depth <= len(prompt.ids):
            return 0.0
        others = [older for older in self.prompts if not continues(prompt, older)]
        alike = [older for older in others if prompt.ids[depth - 1] in older.ids]
        return len(alike) / (len(others) + 1)


def some_prompt(rng: random.Random, branches: int) -> RecentPrompt:
    ids, block = [], 0
    for _ in range(rng.randint(0, 7)):
        block = hash((block, rng.randrange(branches)))
        ids.append(block)
    return RecentPrompt(ids, rng.randrange(3))


@pytest.mark.parametrize("branches", [2, 3, 5])
def test_shares_are_those_of_the_rule(branches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_prompts, "WATCHED_DEPTHS", 5)
    monkeypatch.setattr(recent_prompts, "WATCHED_OF_A_DEPTH", 6)
    rng = random.Random(branches)
    recent, rule = RecentPrompts(), ByRule()
    # Asked for so often that they are counted along, until too many others are.
    popular = [some_prompt(rng, branches) for _ in range(8)]
    for step in range(800):
        prompt, depth = some_prompt(rng, branches), rng.randint(0, 8)
        asked = [(one, (step // 40 + place) % 4 + 1) for place, one in enumerate(popular)]
        for one, at in [(prompt, depth), *asked]:
            assert recent.share(one, at) == rule.share(one, at)
        if step == 600:
            recent.clear()
            rule.prompts.clear()
        recent.add(prompt)
        rule.add(prompt)
        assert len(recent._alike) <= 5
        assert all(len(ends) <= 6 for ends in recent._alike.values())
