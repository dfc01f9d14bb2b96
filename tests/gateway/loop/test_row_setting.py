"""The kernel's queue is opened by a process that streams, unless it is told not to."""

import random

import pytest

from clocks import FakeClock
from radixgate.gateway import data_path
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.data_path import DataPath, Rules
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.loop.row_writes import Ring
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.rules import NO_RULES
from radixgate.policies.registry import PolicyConfigs


@pytest.mark.parametrize(
    ("config", "processes", "opened"),
    [
        pytest.param(GatewayConfig(), 1, 1, id="the only process"),
        pytest.param(GatewayConfig(processes=4), 4, 1, id="a child"),
        pytest.param(GatewayConfig(processes=4), 1, 0, id="its parent"),
        pytest.param(GatewayConfig(row_writes=False), 1, 0, id="told not to"),
    ],
)
def test_a_queue_is_opened_by_who_streams(
    config: GatewayConfig, processes: int, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []

    def open_ring() -> Ring | None:
        asked.append(None)
        return None

    monkeypatch.setattr(data_path, "open_ring", open_ring)
    clock, rng = FakeClock(), random.Random(1)
    own = own_policy("random", PolicyConfigs(), clock, rng)
    rules = Rules(config, NO_RULES, KeyRing.of(NO_RULES.access))
    DataPath(rules, own, clock, rng, processes)
    assert len(asked) == opened
