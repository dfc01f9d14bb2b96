"""Many steps at once end when they would end one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.loadgen.simulator.stride import Stride
from simulated import Alone, request


@given(
    first=st.floats(1e-4, 1.0),
    growth=st.one_of(st.just(0.0), st.floats(1e-9, 0.1)),
    steps=st.integers(1, 300),
    share=st.floats(0.0, 1.0),
)
def test_a_cut_ends_with_the_step_under_way(
    first: float, growth: float, steps: int, share: float
) -> None:
    stride = Stride(10.0, first, growth, steps)
    now = 10.0 + share * (stride.ends_s - 10.0)
    ends = [10.0]
    for step in range(steps):
        ends.append(ends[-1] + first + step * growth)
    assert stride.ends_s == pytest.approx(ends[-1])
    cut = stride.cut(now)
    assert 1 <= cut.steps <= steps
    assert cut.ends_s >= now - 1e-9
    assert cut.steps == 1 or ends[cut.steps - 1] < now + 1e-9


def test_a_prompt_that_comes_while_others_decode_begins_with_the_next_step() -> None:
    alone = Alone()
    decoding = alone.send(request(1_000, output=50))
    late = alone.send(request(1_000, first=100), at_s=0.4)
    alone.run()
    begins = 0.010 + 1_000 * 50e-6
    steps = 0
    while begins < 0.4:
        begins += 0.010 + 50e-6 + 15e-9 * (1_001 + steps)
        steps += 1
    context = 1_001 + steps
    assert late.first_s == pytest.approx(begins + 0.010 + 1_001 * 50e-6 + 15e-9 * context)
    assert decoding.ended_s > late.first_s
