"""What can be written down, and what cannot be asked for."""

import pytest

from radixgate.errors import ConfigError
from radixgate.gateway.settings.observe_config import ObserveConfig


def test_nothing_is_written_or_sent_unless_it_is_asked_for() -> None:
    config = ObserveConfig()
    assert (config.decision_log, config.request_log, config.traces_url) == (None, None, None)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        pytest.param("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces", id="host"),
        pytest.param("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces", id="slash"),
        pytest.param("https://c/own/path", "https://c/own/path", id="a-path-of-its-own"),
    ],
)
def test_a_collector_is_named_by_host_or_by_its_whole_address(endpoint: str, url: str) -> None:
    assert ObserveConfig(otlp_traces_endpoint=endpoint).traces_url == url


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"otlp_traces_endpoint": "localhost:4317"}, "http://host:port", id="grpc"),
        pytest.param({"otlp_traces_endpoint": "http://"}, "http://host:port", id="nobody"),
        pytest.param({"request_log": ""}, "request_log is empty", id="empty"),
        pytest.param({"request_log": "x", "decision_log": "x"}, "are both x", id="one-file"),
        pytest.param({"trace_sample_ratio": 1.5}, "from 0 to 1", id="more-than-all"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ObserveConfig(**fields)  # type: ignore[arg-type]
