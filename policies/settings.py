"""What the policies can be told, as sections of a command that runs them."""

from collections.abc import Mapping
from types import MappingProxyType

from radixgate.configs.load import Settings
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.kv_cost import KvCostConfig
from radixgate.policies.prefix_hash import PrefixHashConfig
from radixgate.policies.registry import PolicyConfigs
from radixgate.policies.slo import SloConfig
from radixgate.policies.sticky import StickyConfig

POLICY_SECTIONS: Mapping[str, type] = MappingProxyType(
    {
        "cache_aware": CacheAwareConfig,
        "kv_cost": KvCostConfig,
        "prefix_hash": PrefixHashConfig,
        "sticky": StickyConfig,
        "slo": SloConfig,
    }
)


def policy_configs(settings: Settings) -> PolicyConfigs:
    """Of a command that has all of these sections. Raises TypeError if it has not."""
    return PolicyConfigs(
        cache_aware=settings.of(CacheAwareConfig),
        kv_cost=settings.of(KvCostConfig),
        prefix_hash=settings.of(PrefixHashConfig),
        sticky=settings.of(StickyConfig),
        slo=settings.of(SloConfig),
    )
