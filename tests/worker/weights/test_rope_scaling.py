"""Scaled positions: fast waves stay, slow ones are stretched, by each scaling's own measure."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from paged_world import LLAMA3_SCALING, PLAIN
from radixgate.errors import ModelError
from radixgate.worker.weights.rope_scaling import (
    attention_factor,
    inverse_frequencies,
    scaled_context,
)

HEAD = replace(PLAIN, head_dim=64, rope_base=10_000.0)
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}


def stretch(scaling: Mapping[str, object]) -> list[float]:
    """How many times longer each wave became, fastest first."""
    scaled = inverse_frequencies(replace(HEAD, rope_scaling=scaling))
    return [round(x, 9) for x in (inverse_frequencies(HEAD) / scaled).tolist()]


def test_every_pair_of_a_head_has_a_longer_wave_than_the_one_before() -> None:
    waves = (2 * math.pi / inverse_frequencies(HEAD)).tolist()
    assert len(waves) == 32
    assert waves[0] == pytest.approx(2 * math.pi)
    assert waves[16] == pytest.approx(2 * math.pi * 100)
    assert waves == sorted(waves)


def test_linear_stretches_all_alike() -> None:
    assert set(stretch({"rope_type": "linear", "factor": 3.0})) == {3.0}
    assert set(stretch({"rope_type": "default"})) == {1.0}


@pytest.mark.parametrize(
    ("scaling", "factor"), [(LLAMA3_SCALING, 8.0), (YARN, 4.0)], ids=["llama3", "yarn"]
)
def test_fast_waves_are_kept_slow_ones_stretched_and_those_between_blended(
    scaling: Mapping[str, object], factor: float
) -> None:
    stretched = stretch(scaling)
    assert stretched == sorted(stretched)
    assert (stretched[0], stretched[-1]) == (1.0, factor)
    assert any(1.0 < times < factor for times in stretched)


def test_yarn_ramps_between_the_waves_that_turn_often_and_once() -> None:
    # 32 turns in 2048 tokens: index 32 * ln(2048 / (64 pi)) / ln 10000 = 8.06; one turn: 20.1.
    stretched = stretch(YARN)
    assert stretched[8] == 1.0 < stretched[9]
    assert stretched[20] < stretched[21] == 4.0
    exact = stretch(YARN | {"truncate": False})
    assert stretched[20] < exact[20] < 4.0
    wider = stretch(YARN | {"beta_fast": 64.0})
    assert wider[8] > 1.0


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, 0.1 * math.log(4) + 1, id="from-the-factor"),
        pytest.param({"attention_factor": 1.5}, 1.5, id="as-said"),
        pytest.param({"factor": 0.5}, 1.0, id="no-stretch"),
        pytest.param(
            {"mscale": 2.0, "mscale_all_dim": 1.0},
            (0.2 * math.log(4) + 1) / (0.1 * math.log(4) + 1),
            id="from-two-weights",
        ),
        pytest.param({"rope_type": "linear"}, 1.0, id="yarn-alone-has-one"),
    ],
)
def test_yarn_makes_attention_sharper(more: dict[str, object], expected: float) -> None:
    factor = attention_factor(replace(HEAD, rope_scaling=YARN | more))
    assert factor == pytest.approx(expected)
    assert attention_factor(HEAD) == 1.0


def test_a_wave_is_divided_by_its_own_divisor() -> None:
    divisors = [1.0 + place for place in range(32)]
    assert stretch({"rope_type": "divisors", "divisors": divisors}) == divisors


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        ({"rope_type": "linear", "factor": 2.0}, 2000),
        ({"rope_type": "linear", "factor": 2.0, "original_max_position_embeddings": 500}, 1000),
        (YARN, 8192),
        (YARN | {"original_max_position_embeddings": 100}, 1000),
        (LLAMA3_SCALING, 1000),
    ],
)
def test_the_context_after_scaling(scaling: Mapping[str, object], expected: int) -> None:
    assert scaled_context(1000, scaling) == expected


@pytest.mark.parametrize(
    ("scaling", "named"),
    [
        ({"rope_type": "dynamic", "factor": 2.0}, "'dynamic' is not supported: its angles depend"),
        ({"type": "longrope"}, "'longrope' is not supported: it has other angles"),
        ({}, "type 'None' is not supported, only default, linear"),
        ({"rope_type": "linear"}, "factor is None, it must be a number above 0"),
        ({"rope_type": "linear", "factor": -1}, "factor is -1"),
        (LLAMA3_SCALING | {"high_freq_factor": 1.0}, "low_freq_factor 1.0 must be below"),
        (YARN | {"beta_fast": "x"}, "beta_fast is 'x'"),
        ({"rope_type": "divisors", "divisors": [1.0]}, "1 divisors for 32 frequencies"),
    ],
)
def test_what_cannot_be_scaled_is_named(scaling: Mapping[str, object], named: str) -> None:
    with pytest.raises(ModelError, match=named):
        inverse_frequencies(replace(HEAD, rope_scaling=scaling))
