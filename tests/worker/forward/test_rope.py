import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paged_world import LLAMA3_SCALING, PLAIN
from radixgate.errors import ModelError
from radixgate.worker.forward.rope import Rope, rotate
from radixgate.worker.weights.rope_scaling import inverse_frequencies

LONG = replace(PLAIN, context_length=2000)
ROPE = Rope(LONG)


def rotated(values: list[float], position: int) -> list[float]:
    """One head's vector at one position."""
    x = torch.tensor(values).view(1, 1, -1)
    turned: list[float] = rotate(x, ROPE.at(torch.tensor([position]))).flatten().tolist()
    return turned


@settings(max_examples=30)
@given(
    values=st.lists(st.floats(-4, 4, width=32), min_size=8, max_size=8),
    position=st.integers(0, LONG.context_length - 1),
)
def test_each_element_turns_with_the_one_half_a_head_further(
    values: list[float], position: int
) -> None:
    expected = [0.0] * 8
    for pair in range(4):
        angle = position * 10_000.0 ** (-2 * pair / 8)
        first, second = values[pair], values[pair + 4]
        expected[pair] = first * math.cos(angle) - second * math.sin(angle)
        expected[pair + 4] = second * math.cos(angle) + first * math.sin(angle)
    assert rotated(values, position) == pytest.approx(expected, abs=2e-6)


def test_position_zero_turns_nothing() -> None:
    values = [1.0, -2.0, 3.0, 0.5, 4.0, 0.25, -1.0, 2.0]
    assert rotated(values, 0) == values


def test_scores_depend_on_the_distance_only() -> None:
    q, k = torch.randn(1, 1, 8), torch.randn(1, 1, 8)
    near = rotate(q, ROPE.at(torch.tensor([7]))) * rotate(k, ROPE.at(torch.tensor([3])))
    far = rotate(q, ROPE.at(torch.tensor([1507]))) * rotate(k, ROPE.at(torch.tensor([1503])))
    assert near.sum().item() == pytest.approx(far.sum().item(), abs=1e-4)


def test_linear_scaling_stretches_every_wave() -> None:
    scaled = replace(PLAIN, rope_scaling={"type": "linear", "factor": 4.0})
    assert torch.equal(inverse_frequencies(scaled) * 4, inverse_frequencies(PLAIN))


def test_default_scaling_is_none() -> None:
    scaled = replace(PLAIN, rope_scaling={"rope_type": "default"})
    assert torch.equal(inverse_frequencies(scaled), inverse_frequencies(PLAIN))


def test_llama3_scaling_keeps_fast_waves_stretches_slow_ones_and_blends_between() -> None:
    config = replace(PLAIN, head_dim=64, rope_base=500_000.0, rope_scaling=LLAMA3_SCALING)
    before = inverse_frequencies(replace(config, rope_scaling=None))
    after = inverse_frequencies(config)
    for old, new in zip(before.tolist(), after.tolist(), strict=True):
        turns = 256 * old / (2 * math.pi)  # within the context it was trained with
        if turns > 4:
            assert new == pytest.approx(old)
        elif turns < 1:
            assert new == pytest.approx(old / 8)
        else:
            blend = (turns - 1) / (4 - 1)
            assert new == pytest.approx((1 - blend) * old / 8 + blend * old)
    assert {1.0, 0.125} < set((after / before).tolist())  # and some are blended


@pytest.mark.parametrize(
    ("scaling", "complaint"),
    [
        pytest.param({"rope_type": "su", "factor": 2.0}, "'su'", id="unknown-type"),
        pytest.param({"factor": 2.0}, "'None'", id="no-type"),
        pytest.param({"rope_type": "linear"}, "factor is None", id="no-factor"),
        pytest.param({"rope_type": "linear", "factor": "2"}, "factor is '2'", id="not-a-number"),
        pytest.param(
            LLAMA3_SCALING | {"high_freq_factor": 1.0}, "low_freq_factor 1.0", id="empty-band"
        ),
        pytest.param(
            LLAMA3_SCALING | {"original_max_position_embeddings": 0},
            "original_max_position_embeddings is 0",
            id="no-trained-context",
        ),
    ],
)
def test_a_scaling_that_is_not_understood_is_named(
    scaling: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ModelError, match=complaint):
        Rope(replace(PLAIN, rope_scaling=scaling))
