"""What one of several processes may take of the limits that hold for all of them together."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from radixgate.errors import ConfigError
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.keys_file import KeyEntry
from radixgate.gateway.settings.limits_config import LimitsConfig


def share_of(settings: GatewaySettings, index: int) -> GatewaySettings:
    """The settings of the process `index`. What cannot be divided evenly goes to the first ones.

    The address stays; a given seed is another one for each process.
    """
    config, limits = settings.config, settings.rules.limits
    count = config.processes
    divided = replace(
        limits,
        max_concurrent_requests=limits.max_concurrent_requests
        if not limits.bounds_concurrency
        else _part(limits.max_concurrent_requests, index, count),
        queue_size=_part(limits.queue_size, index, count),
        tenant_requests_per_minute=_fraction(limits.tenant_requests_per_minute, count),
        tenant_tokens_per_minute=_fraction(limits.tenant_tokens_per_minute, count),
    )
    seed = None if config.seed is None else config.seed * count + index + 1
    return replace(
        settings,
        config=replace(config, seed=seed),
        rules=replace(settings.rules, limits=divided),
    )


def keys_share(keys: Sequence[KeyEntry], count: int) -> list[KeyEntry]:
    """The keys with a process's part of their tenants' limits."""
    return [
        structs.replace(
            key,
            requests_per_minute=_fraction(key.requests_per_minute, count),
            tokens_per_minute=_fraction(key.tokens_per_minute, count),
        )
        for key in keys
    ]


def check_shares(processes: int, limits: LimitsConfig) -> None:
    """Raises ConfigError if some process could never run a request."""
    if limits.bounds_concurrency and limits.max_concurrent_requests < processes:
        raise ConfigError(
            f"max_concurrent_requests is {limits.max_concurrent_requests}, and processes is"
            f" {processes}: each process needs a part of at least 1"
        )


def _part(whole: int, index: int, count: int) -> int:
    return whole // count + (index < whole % count)


def _fraction(whole: float | None, count: int) -> float | None:
    return None if whole is None else whole / count
