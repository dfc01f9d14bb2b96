"""Prompts whose times are made up from a share, and that share found again."""

import random

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.prompt_fit import LonePrompt, prompt_times, token_time

FIXED_S, TOKEN_S = 0.030, 0.00234


def prompts(
    least: float, most: float, share: float, *, count: int = 60, noise_s: float = 0.0
) -> list[LonePrompt]:
    """Of three lengths, beside any number of neighbours from `least` to `most`."""
    rng = random.Random(1)
    found = []
    for _ in range(count):
        tokens, neighbours = rng.choice((16, 112, 1_200)), rng.uniform(least, most)
        seconds = (FIXED_S + TOKEN_S * tokens) * (1.0 + share * neighbours)
        found.append(LonePrompt(seconds + rng.gauss(0.0, noise_s), tokens, neighbours))
    return found


@pytest.mark.parametrize("share", [0.0, 0.05, 0.4, 0.8, 2.5])
@pytest.mark.parametrize(
    ("least", "most"),
    [
        pytest.param(0.0, 1.0, id="none-to-one"),
        pytest.param(0.5, 1.0, id="mostly-one"),
        pytest.param(0.9, 1.0, id="nearly-always-one"),
        pytest.param(2.0, 3.0, id="two-to-three"),
    ],
)
def test_it_finds_the_share_however_many_neighbours_there_were(
    least: float, most: float, share: float
) -> None:
    token_s, found = prompt_times(prompts(least, most, share))
    assert found == pytest.approx(share, abs=1e-4)
    assert token_s == pytest.approx(TOKEN_S, rel=1e-4)


def test_times_that_scatter_leave_the_share_nearly_as_well_known() -> None:
    token_s, share = prompt_times(prompts(0.0, 1.0, 0.4, noise_s=0.1))
    assert share == pytest.approx(0.4, abs=0.05)
    assert token_s == pytest.approx(TOKEN_S, rel=0.05)


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        pytest.param(prompts(0.0, 0.0, 0.4), "0.00 to 0.00 other workers", id="one-worker"),
        pytest.param(prompts(1.0, 1.0, 0.4), "1.00 to 1.00 other workers", id="always-one"),
        pytest.param(
            prompts(0.9, 1.0, 0.4, noise_s=0.1), "0.90 to 1.00 other workers", id="too-noisy"
        ),
    ],
)
def test_prompts_that_do_not_tell_the_share_are_refused(
    seen: list[LonePrompt], counts: str
) -> None:
    with pytest.raises(ConfigError, match=f"beside 60 prompts {counts} were busy.* run the bench"):
        prompt_times(seen)


def test_without_asking_for_it_what_neighbours_add_counts_as_the_prompt_s() -> None:
    assert token_time(prompts(1.0, 1.0, 0.5)) == pytest.approx(1.5 * TOKEN_S)
