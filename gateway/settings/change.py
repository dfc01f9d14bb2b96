"""What a change of settings comes to: which of them hold from now on, and which need a restart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.gateway_settings import GatewaySettings

Config = TypeVar("Config", GatewayConfig, AccessConfig)
_POLICIES = "policies"
# What an experiment's arms start from says the same of the policies once more.
_ELSEWHERE = frozenset(("experiments.policies",))

# By section, what the next request can go by. What stands in no list needs a restart.
_GATEWAY = frozenset(
    (
        "worker_urls",
        "workers_file",
        "policy",
        "request_timeout_secs",
        "stream_idle_timeout_secs",
        "retry_max_retries",
        "retry_initial_backoff_ms",
        "retry_max_backoff_ms",
        "health_check_interval_secs",
        "health_check_timeout_secs",
        "health_failure_threshold",
        "health_success_threshold",
        "shutdown_accept_secs",
        "shutdown_grace_period_secs",
        "worker_startup_timeout_secs",
    )
)
_ACCESS = frozenset(("api_key", "admin_api_key", "api_keys_file"))


_WHOLE = ("limits", "reliability")


@dataclass(frozen=True, slots=True)
class Change:
    """From one set of settings to another."""

    settings: GatewaySettings  # what holds from now on
    changed: tuple[str, ...]  # by name, `section.setting`
    needs_restart: tuple[str, ...]  # differ as well, and stay as they were
    policy: bool  # another one chooses


def change_of(before: GatewaySettings, now: GatewaySettings) -> Change:
    """All that can change while requests run does; the rest is named. O(settings)."""
    old, new = _by_name(before), _by_name(now)
    differ = sorted(
        name
        for name in old.keys() | new.keys()
        if old.get(name) != new.get(name) and name not in _ELSEWHERE
    )
    changed = [name for name in differ if _is_free(name)]
    stays = [name for name in differ if not _is_free(name)]
    rules = replace(
        before.rules,
        access=_kept(before.rules.access, now.rules.access, "access", stays),
        limits=now.rules.limits,
        reliability=now.rules.reliability,
        experiments=replace(before.rules.experiments, policies=now.policies),
    )
    config = _kept(before.config, now.config, "gateway", stays)
    policy = [name for name in changed if name.split(".")[0] == _POLICIES]
    return Change(
        GatewaySettings(config, now.policies, rules),
        tuple(name.removeprefix(f"{_POLICIES}.") for name in changed),
        tuple(stays),
        policy=bool(policy) or "gateway.policy" in changed,
    )


def _by_name(settings: GatewaySettings) -> Mapping[str, object]:
    plain = msgspec.to_builtins(settings)
    named = {"gateway": plain["config"], **plain["rules"]}
    found = {
        f"{section}.{name}": value
        for section, values in named.items()
        for name, value in values.items()
    }
    for policy, values in plain["policies"].items():
        found |= {f"{_POLICIES}.{policy}.{name}": value for name, value in values.items()}
    return found


def _is_free(name: str) -> bool:
    section, _, setting = name.partition(".")
    if section in (_POLICIES, *_WHOLE):
        return True
    return setting in {"gateway": _GATEWAY, "access": _ACCESS}.get(section, frozenset())


def _kept(before: Config, now: Config, section: str, stays: Sequence[str]) -> Config:
    """`now`, but for what needs a restart."""
    start = f"{section}."
    names = [name.removeprefix(start) for name in stays if name.startswith(start)]
    return replace(now, **{name: getattr(before, name) for name in names})
