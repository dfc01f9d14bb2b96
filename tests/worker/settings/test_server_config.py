"""Settings of the worker's servers that cannot work are refused by name."""

from typing import Any

import pytest

from radixgate.errors import ConfigError
from radixgate.worker.settings.server_config import ServerConfig


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("port", 70_000, id="port"),
        pytest.param("port", -1, id="port-negative"),
        pytest.param("grpc_port", 65_536, id="grpc-port"),
        pytest.param("max_payload_size", 0, id="no-payload"),
        pytest.param("kv_ring_updates", 0, id="no-ring"),
        pytest.param("shutdown_grace_period_secs", -1.0, id="grace"),
        pytest.param("served_model_name", "", id="no-name"),
    ],
)
def test_a_setting_out_of_range_is_named(name: str, value: object) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=f"^{name} is "):
        ServerConfig(**settings)
