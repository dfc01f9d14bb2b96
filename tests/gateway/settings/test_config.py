"""Settings that cannot work are refused by name."""

from typing import Any

import pytest

from radixgate.errors import ConfigError
from radixgate.gateway.choice.retries import JITTER, RetryRule
from radixgate.gateway.settings.gateway_config import GatewayConfig


class Middle:
    """A random source whose every draw is the middle."""

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("port", 70_000, id="port"),
        pytest.param("port", -1, id="port-negative"),
        pytest.param("processes", 1_000_000, id="processes-by-the-million"),
        pytest.param("max_payload_size", 0, id="no-payload"),
        pytest.param("request_timeout_secs", 0.0, id="no-time"),
        pytest.param("health_check_interval_secs", -1.0, id="interval"),
        pytest.param("retry_max_retries", -1, id="retries"),
        pytest.param("retry_initial_backoff_ms", 1e9, id="backoff-over-its-bound"),
    ],
)
def test_a_setting_out_of_range_is_named(name: str, value: float) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=name):
        GatewayConfig(**settings)


def test_backoff_doubles_up_to_its_bound_and_retries_end() -> None:
    rule = RetryRule(max_retries=4, initial_backoff_s=0.1, max_backoff_s=0.3)
    rng: Any = Middle()
    waits = [rule.backoff_s(failed, rng) for failed in range(1, 7)]
    assert waits == [pytest.approx(wait) for wait in (0.1, 0.2, 0.3, 0.3)] + [None, None]
    assert RetryRule(0, 0.1, 0.3).backoff_s(1, rng) is None
    assert 0 < JITTER < 1
