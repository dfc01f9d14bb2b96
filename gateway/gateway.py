"""The whole gateway, put together: what listens, what answers, and what watches the workers."""

import asyncio
import random
import time

from aiohttp import web

from radixgate.clock import Clock
from radixgate.errors import ConfigError
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.admin import Admin
from radixgate.gateway.another_try import AnotherTry
from radixgate.gateway.asking import Asking
from radixgate.gateway.breakers import Breakers
from radixgate.gateway.config import GatewayConfig
from radixgate.gateway.core import Core, PatienceRule
from radixgate.gateway.deadlines import Deadlines
from radixgate.gateway.foreign_request import HOT_PATHS
from radixgate.gateway.forwarder import Forwarder
from radixgate.gateway.gatekeeper import Limits, generator_of
from radixgate.gateway.health import HealthRule
from radixgate.gateway.http_front import Front
from radixgate.gateway.key_ring import KeyRing
from radixgate.gateway.metrics import GatewayMetrics
from radixgate.gateway.own_headers import OwnHeaders
from radixgate.gateway.prompt_tokens import PromptTokenizer
from radixgate.gateway.request_ids import RequestIds
from radixgate.gateway.request_reader import FrontLimits
from radixgate.gateway.retries import RetryRule
from radixgate.gateway.retry_budget import RetryBudget
from radixgate.gateway.rules import NO_RULES, GatewayRules
from radixgate.gateway.spared import Spared
from radixgate.gateway.worker_choice import WorkerChoice
from radixgate.gateway.worker_factories import worker_factories
from radixgate.gateway.worker_rows import worker_gauges
from radixgate.gateway.workers import Workers
from radixgate.policies.base import Policy

_DRAIN_LOOK_S = 0.05


class Gateway:
    """Made, then `start`ed on a running loop; ended by `drain` and `stop`, or by `stop` alone."""

    def __init__(
        self,
        config: GatewayConfig,
        policy: Policy,
        clock: Clock,
        rng: random.Random,
        rules: GatewayRules = NO_RULES,
    ) -> None:
        self._config = config
        keys = KeyRing.of(rules.access)
        self._deadlines = Deadlines(clock)
        self.fleet = Fleet(policy, clock, rng, rules.fleet)
        prompts = PromptTokenizer()
        factories = worker_factories(
            config,
            self.fleet,
            prompts,
            self._deadlines,
            clock,
            rng,
            rules.access.worker_api_key,
        )
        reliability = rules.reliability
        spared = Spared(reliability.slow_start_secs, clock, rng)
        self.choice = WorkerChoice(self.fleet, Breakers(reliability, clock), spared)
        self.workers = Workers(
            self.fleet,
            factories,
            HealthRule.of(config),
            config.shutdown_grace_period_secs,
            self.choice,
        )
        self.metrics = GatewayMetrics(lambda: worker_gauges(self.workers, self.fleet))
        budget = RetryBudget(reliability.retry_budget_ratio, self.metrics, clock, self._deadlines)
        request_ids = RequestIds(rng)
        self._own_headers = OwnHeaders(config.policy.encode(), request_ids)
        core = Core(
            choice=self.choice,
            asking=Asking(self.fleet, prompts),
            clients=self.workers.clients,
            on_worker_failed=self.workers.check_soon,
            policy=config.policy.encode(),
            patience=PatienceRule.of(config),
            another_try=AnotherTry(RetryRule.of(config), budget, self.choice, self.metrics, rng),
            metrics=self.metrics,
            deadlines=self._deadlines,
            clock=clock,
            rng=rng,
            request_ids=request_ids,
            own_headers=self._own_headers,
            passes_authorization=not keys.used,
        )
        limits = Limits.of(rules.limits, keys, clock)
        self._generator = generator_of(Forwarder(core), core, keys, limits)
        self._clock = clock
        self._admin = Admin(
            self.workers,
            self.fleet,
            self.metrics,
            config.policy,
            self._own_headers,
            keys,
            prompts,
            limits.drop_queue,
            started_at=time.time(),
        )
        self._runner: web.AppRunner | None = None
        self._front: Front | None = None
        self._server: asyncio.AbstractServer | None = None
        self.port = 0  # the one really taken, once started

    async def start(self) -> None:
        """Listen, and begin to look for the workers; returns before any of them has joined.

        Raises ConfigError if the address cannot be had or a worker's URL is none.
        """
        config = self._config
        app = self._admin.application(config.max_payload_size)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        make_admin = self._runner.server
        assert make_admin is not None
        self._front = Front(
            self._generator,
            make_admin,
            HOT_PATHS,
            FrontLimits(config.max_payload_size),
            self._clock,
            self._deadlines,
            self._own_headers,
        )
        self._deadlines.start()
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                self._front, config.host, config.port, backlog=4096, reuse_address=True
            )
        except OSError as exc:
            await self.stop()
            raise ConfigError(f"cannot listen on {config.host}:{config.port}: {exc}") from exc
        self._server = server
        self.port = server.sockets[0].getsockname()[1]
        for url in config.worker_urls:
            self.workers.add(url)

    async def drain(self) -> None:
        """Accept nothing more and let running answers end, for at most the grace time."""
        self._admin.draining = True
        if self._server is not None:
            self._server.close()
        if self._front is None:
            return
        self._front.drain()
        waited_s = 0.0
        while self._front.connections and waited_s < self._config.shutdown_grace_period_secs:
            await asyncio.sleep(_DRAIN_LOOK_S)
            waited_s += _DRAIN_LOOK_S

    async def stop(self) -> None:
        """Break off what still runs, and free everything."""
        if self._server is not None:
            self._server.close()
        if self._front is not None:
            self._front.abort()
        self.workers.close()
        self._deadlines.stop()
        if self._runner is not None:
            await self._runner.cleanup()
        # What was cancelled just now gets its turn to end.
        await asyncio.sleep(0)
