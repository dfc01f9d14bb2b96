"""Who knows the whole fleet: the workers and their checks, and the routes of the admins."""

import asyncio
import random
import time
from collections.abc import Callable

from aiohttp import web

from radixgate.clock import Clock
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.admin.application import Admin
from radixgate.gateway.admin.log import admin_log
from radixgate.gateway.data_path import DataPath, Rules
from radixgate.gateway.experimenting import Experimenting
from radixgate.gateway.workers.health import HealthRule
from radixgate.gateway.workers.workers import Workers
from radixgate.proto.http_banner import Runner


class Headquarters:
    """One a gateway, however many processes answer its generations."""

    def __init__(self, first: Rules, policy: RuledPolicy, clock: Clock, rng: random.Random) -> None:
        self.path = path = DataPath(first, policy, clock, rng)
        config = first.config
        self.workers = Workers(
            path.fleet,
            path.factories,
            HealthRule.of(config),
            config.shutdown_grace_period_secs,
            path.choice,
        )
        path.serve(self.workers, first)
        self.experimenting = Experimenting(path, self.workers, first, policy, clock, rng)
        self.admin = Admin(
            self.workers,
            path.fleet,
            path.metrics,
            config.policy,
            path.own_headers,
            first.keys,
            path.prompts,
            path.stored,
            path.held,
            gateway_id=path.names.gateway_id,
            started_at=time.time(),
        )
        self._max_payload_size = config.max_payload_size
        self._runner: Runner | None = None

    async def open(self, *routes: web.RouteDef) -> Callable[[], asyncio.Protocol]:
        """What takes over a connection with an admin's request; `routes`: besides the admin's."""
        app = self.admin.application(self._max_payload_size)
        app.add_routes(routes)
        self._runner = Runner(app, access_log=None, shutdown_timeout=1.0, logger=admin_log())
        await self._runner.setup()
        make_admin = self._runner.server
        assert make_admin is not None
        return make_admin

    def apply(self, rules: Rules, policy: RuledPolicy | None) -> None:
        """Go by these from now on. `policy`: None if it stays."""
        self.path.apply(rules, policy)
        self.experimenting.apply(rules)
        self.workers.judge_by(HealthRule.of(rules.config))
        self.workers.drain_s = rules.config.shutdown_grace_period_secs
        self.admin.policy = rules.config.policy
        self.admin.own_headers = self.path.own_headers
        self.admin.keys = rules.keys

    async def close(self) -> None:
        """Remove every worker, and break off what runs."""
        self.experimenting.close()
        self.path.mirror_file.write()
        self.workers.close()
        if self._runner is not None:
            await self._runner.cleanup()
        # What was cancelled just now gets its turn to end.
        await asyncio.sleep(0)
