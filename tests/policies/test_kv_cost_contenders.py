"""Among many candidates only those are counted that may be the cheapest; nothing else changes."""

import random
from collections.abc import Sequence

import pytest

from columns import PROMPT, columns
from radixgate.policies import kv_cost
from radixgate.policies.base import Candidates, RouteRequest
from radixgate.policies.kv_cost import KvCost, KvCostConfig, Terms, equal_to

WORKERS = 40


def terms(
    cached: dict[int, int], waiting: dict[int, int] | None = None, fastest: float = 1_000.0
) -> Terms:
    """Of forty workers with a thousand tokens a second; what is not named is cold and idle."""
    return Terms(
        prompt_tokens=1_000,
        waiting=[(waiting or {}).get(n, 0) for n in range(WORKERS)],
        cached=[cached.get(n, 0) for n in range(WORKERS)],
        requests=[0] * WORKERS,
        weights={0: 1.0},
        speeds=[fastest, *[1_000.0] * (WORKERS - 1)],
        fastest=fastest,
        pressure_s={},
    )


@pytest.mark.parametrize(
    ("of", "contenders"),
    [
        # 100 tokens are left, a tenth of a second; 2 % and a millisecond more are as good.
        pytest.param(terms({7: 900, 9: 898, 11: 896}), [7, 9], id="who-has-least-left"),
        pytest.param(terms({7: 900, 9: 600}, {7: 300}), [7, 9], id="one-that-need-not-wait"),
        pytest.param(terms({7: 900, 9: 700}, fastest=2_000.0), [7], id="half-as-far-at-most"),
        pytest.param(terms({7: 900, 9: 820}, fastest=2_000.0), [7, 9], id="as-one-may-be-fast"),
        pytest.param(terms({}), range(WORKERS), id="everybody-where-all-are-cold"),
        pytest.param(terms({7: 900}, {7: 950}), range(WORKERS), id="where-the-warm-one-is-busy"),
    ],
)
def test_who_may_be_among_the_cheapest(of: Terms, contenders: Sequence[int]) -> None:
    found, costs = of.contenders(max(of.cached))
    assert list(found) == list(contenders)
    least, everyone = min(costs), of.costs(range(WORKERS))
    assert least == min(everyone)
    assert [everyone[at] for at in found] == costs
    cheap = [at for at, cost in enumerate(everyone) if cost <= equal_to(least)]
    assert set(cheap) <= set(found)


def fleet(draw: random.Random) -> Candidates:
    """Mostly idle, mostly cold; now and then a crowd, a full pool, a slow worker."""
    rarely = draw.choice((0.02, 0.3))

    def column(value: int) -> list[int]:
        return [draw.randrange(value) if draw.random() < rarely else 0 for _ in range(WORKERS)]

    return columns(
        WORKERS,
        cached=[300 + tokens for tokens in column(draw.choice((10, 900)))],
        uncached=column(2_000),
        requests=column(50),
        speeds=[1_000.0 if draw.random() > rarely / 9 else 400.0 for _ in range(WORKERS)],
        kv_share=[0.95 if draw.random() < rarely / 9 else 0.5 for _ in range(WORKERS)],
        recent_share=lambda index: 0.1,
    )


def test_choices_and_scores_are_those_of_counting_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, slow = (KvCost(KvCostConfig(), random.Random(1)) for _ in range(2))
    draw = random.Random(2)
    pruned = 0
    for number in range(300):
        candidates = fleet(draw)
        request = RouteRequest(PROMPT.prompt_tokens, session=draw.choice((None, "a", "b")))
        monkeypatch.setattr(kv_cost, "_MANY", 10_000)
        expected = slow.choose(request, candidates)
        monkeypatch.setattr(kv_cost, "_MANY", 0)
        found = quick.choose(request, candidates)
        assert (number, found.index, found.branch) == (number, expected.index, expected.branch)
        assert found.explain() == expected.explain()
        pruned += found.explain() is not found.explain()  # counted when asked for
    assert 50 < pruned < 250
