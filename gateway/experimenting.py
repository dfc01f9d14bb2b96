"""Experiments as a part of the gateway: what they are given of it, and what it gets from them."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from aiohttp import web
from prometheus_client.metrics_core import Metric

from radixgate.clock import Clock
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.data_path import DataPath, Rules
from radixgate.gateway.experiments.arm_policies import ArmPolicies
from radixgate.gateway.experiments.experiments import Experiments
from radixgate.gateway.experiments.gauges import experiment_metrics
from radixgate.gateway.experiments.record_file import WriterThread
from radixgate.gateway.experiments.routes import ExperimentRoutes
from radixgate.gateway.experiments.site import Site
from radixgate.gateway.workers.workers import UnknownWorker, Workers


class Experimenting:
    """Made with the gateway; costs nothing while no experiment runs."""

    def __init__(
        self,
        path: DataPath,
        workers: Workers,
        first: Rules,
        policy: RuledPolicy,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """`policy`: the gateway's own. Raises ConfigError for a declared one that cannot be."""
        rules = first.rules.experiments
        self._workers = workers
        self._thread = WriterThread()
        self._arms = ArmPolicies(rules.policies, first.config.policy, clock, rng)
        site = Site(
            fleet=path.fleet,
            fleet_config=first.rules.fleet,
            detour=path.detour,
            arms=self._arms,
            flush=self._flush,
            folder=Path(rules.log.experiment_folder),
            most_lines=rules.log.experiment_lines,
            clock=clock,
            wall_clock=time.time,
            rng=rng,
            all_ready=self._all_ready,
        )
        self.experiments = Experiments(
            site, policy, rules.declared, soon=_soon, in_thread=self._thread
        )
        path.deadlines.watch(self.experiments)
        path.metrics.read_more = self._metrics
        path.use_own_policy = self.experiments.change_own_policy

    def routes(self) -> list[web.RouteDef]:
        return ExperimentRoutes(self.experiments).routes()

    def apply(self, rules: Rules) -> None:
        """What is begun from now on goes by these settings of policies."""
        self._arms.change(rules.rules.experiments.policies, rules.config.policy)

    def drain(self) -> None:
        """The gateway takes nothing new: nobody may wait for a switch any more."""
        self.experiments.stop_all("the gateway stops")

    def close(self) -> None:
        """Write what is left; waits for the disk."""
        self.experiments.close()
        self._thread.close()

    def _metrics(self) -> Iterator[Metric]:
        return experiment_metrics(list(self.experiments.all()))

    def _all_ready(self) -> bool:
        members = self._workers.members()
        return bool(members) and len(self._workers.ready()) == len(members)

    async def _flush(self, names: Sequence[str]) -> Mapping[str, str]:
        """What went wrong, by worker id; empty: nothing did."""
        results = await asyncio.gather(*map(self._flush_one, names))
        return {name: why for name, why in zip(names, results, strict=True) if why}

    async def _flush_one(self, name: str) -> str:
        try:
            result = await self._workers.find(name).handle.flush_cache()
        except UnknownWorker as error:
            return error.message
        return "" if result.ok else result.message or "it did not say why"


def _soon(work: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(work)
