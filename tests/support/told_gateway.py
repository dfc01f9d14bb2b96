"""A small gateway that tells of its requests to whom a test wants."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from radixgate.clock import SystemClock
from radixgate.fleet.rule import Rule
from radixgate.gateway.exchange.narrated import Opening
from radixgate.gateway.observe.story import Story, Teller
from radixgate.gateway.observers import Observers
from radixgate.gateway.settings.observe_config import ObserveConfig
from radixgate.gateway.settings.rules import NO_RULES, GatewayRules
from radixgate.policies.registry import PolicyConfigs
from scripted_worker import ScriptedWorker
from small_gateway import SmallGateway, small_gateway

NO_RULE = Rule.of("round_robin", PolicyConfigs(), None)


class Kept:
    """A `Teller` that keeps its stories."""

    def __init__(self) -> None:
        self.stories: list[Story] = []

    def tell(self, story: Story) -> None:
        self.stories.append(story)


@asynccontextmanager
async def told_gateway(
    workers: Sequence[ScriptedWorker],
    config: ObserveConfig | None = None,
    *,
    tellers: Sequence[Teller] = (),
    opening: Opening | None = None,
    rules: GatewayRules = NO_RULES,
) -> AsyncIterator[SmallGateway]:
    """`tellers` and `opening` besides those of `config`; all is closed at the end."""
    observers = Observers(config or ObserveConfig(), NO_RULE, SystemClock())
    observers.tellers = (*observers.tellers, *tellers)
    observers.opening = opening or observers.opening
    async with small_gateway(workers, rules=rules) as small:
        small.gateway.headquarters.path.observe(observers)
        assert small.gateway.door is not None
        small.gateway.door.renew()
        yield small
    observers.close()
