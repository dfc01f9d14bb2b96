"""How full the fullest pool is."""

from collections.abc import Sequence

import pytest

from radixgate.policies.kv_share import fullest


@pytest.mark.parametrize(
    ("shares", "most"),
    [
        pytest.param([0.25, 0.5, 0.0], 0.5, id="all-tell"),
        pytest.param([None, 0.25, None], 0.25, id="some-tell"),
        pytest.param([None, None], 0.0, id="nobody-tells"),
        pytest.param([0.0], 0.0, id="empty-pools"),
        pytest.param([], 0.0, id="of-nobody"),
    ],
)
def test_the_largest_of_those_that_are_told(shares: Sequence[float | None], most: float) -> None:
    assert fullest(shares) == most
