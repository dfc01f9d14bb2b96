"""Limits of a gateway of several processes: their parts add up to the whole."""

import pytest
from aiohttp import web

from radixgate.errors import ConfigError, RequestError
from radixgate.gateway.one_process import check_one_process, refused_routes
from radixgate.gateway.settings.experiments_config import ExperimentRules, LiveExperimentConfig
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.keys_file import KeyEntry
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.settings.share_of_limits import check_shares, keys_share, share_of


def settings(processes: int, **limits: object) -> GatewaySettings:
    return GatewaySettings(
        GatewayConfig(processes=processes, seed=3),
        rules=GatewayRules(limits=LimitsConfig(**limits)),  # type: ignore[arg-type]
    )


def test_every_part_is_whole_and_their_sum_is_the_limit() -> None:
    whole = settings(3, max_concurrent_requests=8, queue_size=2, tenant_requests_per_minute=60.0)
    parts = [share_of(whole, index).rules.limits for index in range(3)]
    assert [part.max_concurrent_requests for part in parts] == [3, 3, 2]
    assert [part.queue_size for part in parts] == [1, 1, 0]
    assert [part.tenant_requests_per_minute for part in parts] == [20.0] * 3
    assert [part.tenant_tokens_per_minute for part in parts] == [None] * 3


def test_what_is_not_limited_stays_so() -> None:
    assert share_of(settings(2), 1).rules.limits.max_concurrent_requests == -1


def test_each_process_draws_from_a_source_of_its_own() -> None:
    seeds = {share_of(settings(2), index).config.seed for index in range(2)}
    assert len(seeds | {3}) == 3


def test_a_tenant_s_limits_are_divided_and_its_key_is_not() -> None:
    key = KeyEntry("0" * 64, "t", requests_per_minute=10.0)
    (part,) = keys_share([key], 4)
    assert (part.sha256, part.tenant) == (key.sha256, "t")
    assert (part.requests_per_minute, part.tokens_per_minute) == (2.5, None)


def test_a_process_without_a_place_is_refused() -> None:
    limits = LimitsConfig(max_concurrent_requests=2)
    check_shares(2, limits)
    check_shares(9, LimitsConfig())
    with pytest.raises(ConfigError, match="max_concurrent_requests is 2, and processes is 3"):
        check_shares(3, limits)


async def test_experiments_are_refused_by_name() -> None:
    declared = ExperimentRules(declared={"x": LiveExperimentConfig(kind="shadow", b="least_load")})
    rules = GatewayRules(experiments=declared)
    check_one_process(GatewaySettings(GatewayConfig(), rules=rules))
    with pytest.raises(ConfigError, match="this gateway has 2"):
        check_one_process(GatewaySettings(GatewayConfig(processes=2), rules=rules))
    (route,) = refused_routes(2)
    assert isinstance(route, web.RouteDef)
    with pytest.raises(RequestError, match="this gateway has 2"):
        await route.handler(None)  # type: ignore[arg-type]
