"""The whole gateway in one process: what listens, what answers, and what watches the workers."""

import random

from radixgate.clock import Clock
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.data_path import Rules
from radixgate.gateway.door import Door, Listening
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.headquarters import Headquarters
from radixgate.gateway.observers import Observers
from radixgate.gateway.reloading import Adoption, Reloading
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.rules import NO_RULES, GatewayRules
from radixgate.policies.registry import PolicyConfigs


class Gateway:
    """Made, then `start`ed on a running loop; ended by `drain` and `stop`, or by `stop` alone."""

    def __init__(
        self,
        config: GatewayConfig,
        policy: RuledPolicy,
        clock: Clock,
        rng: random.Random,
        rules: GatewayRules = NO_RULES,
        observers: Observers | None = None,
    ) -> None:
        """`observers`: who is told of its requests, and closed with it; None: nobody."""
        self._config = config
        self._rules = rules
        self._clock = clock
        self._rng = rng
        first = Rules(config, rules, KeyRing.of(rules.access))
        self.headquarters = Headquarters(first, policy, clock, rng)
        self._observers = observers
        if observers is not None:
            self.headquarters.path.observe(observers)
        self.workers = self.headquarters.workers
        path = self.headquarters.path
        self.fleet, self.choice, self.metrics = path.fleet, path.choice, path.metrics
        self.door: Door | None = None  # None: not started
        settings = GatewaySettings(config, PolicyConfigs(), rules)
        self.reloading = Reloading(settings, self._adopt, self.workers)
        self.headquarters.admin.reload = self.reloading.by_request

    @property
    def port(self) -> int:
        """The one really taken; 0 until it is."""
        return 0 if self.door is None else self.door.port

    async def start(self) -> None:
        """Listen, and begin to look for the workers; returns before any of them has joined.

        Raises ConfigError if the address cannot be had or a worker's URL is none.
        """
        config = self._config
        make_admin = await self.headquarters.open(*self.headquarters.experimenting.routes())
        tls = self._rules.tls.for_clients()
        listening = Listening(config.host, config.port, config.max_payload_size, tls)
        door = Door(self.headquarters.path, self._rules.headers, make_admin, listening, self._clock)
        self.door = door
        try:
            await door.open()
            self.reloading.begin()
        except BaseException:
            await self.stop()
            raise

    async def drain(self) -> None:
        """Say so, take requests for a moment more, and let running answers end within the grace."""
        self.headquarters.admin.draining = True
        self.headquarters.experimenting.drain()
        if self.door is not None:
            config = self._config
            await self.door.drain(config.shutdown_accept_secs, config.shutdown_grace_period_secs)

    async def stop(self) -> None:
        """Break off what still runs, and free everything."""
        if self.door is not None:
            self.door.close()
        await self.headquarters.close()
        if self._observers is not None:
            self._observers.close()

    async def _adopt(self, adoption: Adoption) -> None:
        """Raises ConfigError if the policy cannot be made; nothing has changed then."""
        settings = adoption.settings
        own = None
        if adoption.change.policy:
            own = own_policy(settings.config.policy, settings.policies, self._clock, self._rng)
        ring = KeyRing.made(settings.rules.access, adoption.keys)
        rules = Rules(settings.config, settings.rules, ring)
        self.headquarters.apply(rules, own)
        if self.door is not None:
            self.door.renew()
        self._config = settings.config

    def reopen_logs(self) -> None:
        """Their files may have been moved away."""
        if self._observers is not None:
            self._observers.reopen()
