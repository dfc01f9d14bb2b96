"""How an experiment is begun: from what it was told to what acts, or decides beside."""

from datetime import UTC, datetime

from radixgate.analysis.experiments.records import Declaration
from radixgate.analysis.experiments.schedule import schedule_of
from radixgate.errors import ConfigError
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.experiments.acting import Acting
from radixgate.gateway.experiments.declared import declaration_of
from radixgate.gateway.experiments.guard import Guard
from radixgate.gateway.experiments.live_policy import LivePolicy
from radixgate.gateway.experiments.logbook import Logbook
from radixgate.gateway.experiments.lookout import Lookout
from radixgate.gateway.experiments.plan import Plan
from radixgate.gateway.experiments.record_file import InThread, RecordFile
from radixgate.gateway.experiments.shadow import Shadow
from radixgate.gateway.experiments.site import LiveStage, Site
from radixgate.gateway.experiments.split import Bucketing, Split, SplitPolicy, pool_of
from radixgate.gateway.experiments.switchback import Switchback
from radixgate.gateway.experiments.units import UNITS
from radixgate.gateway.settings.experiments_config import LiveExperimentConfig
from radixgate.policies.base import Policy


class Beginnings:
    """Makes what runs; starts none of it. Raises ConfigError for what cannot be, before a file
    is made."""

    def __init__(self, site: Site, live: LivePolicy, lookout: Lookout, in_thread: InThread) -> None:
        self._site = site
        self._live = live
        self._lookout = lookout
        self._in_thread = in_thread

    def acting(self, name: str, config: LiveExperimentConfig) -> Acting:
        logbook = self._logbook(name, config)
        plan = self._switchback(logbook, config)
        if plan is None:
            plan = self._split(logbook, config)
        guard = Guard(logbook.declaration.guardrails, config.guardrail_window_s)
        return Acting(logbook, plan, guard, UNITS[config.unit], self._live.revert)

    def shadow(self, name: str, config: LiveExperimentConfig) -> Shadow:
        logbook, site = self._logbook(name, config), self._site
        arm = logbook.declaration.arms[1]
        shadow = Shadow(
            logbook,
            lambda: site.arms.make(arm).policy,
            UNITS[config.unit],
            site.fleet_config,
            site.clock,
            site.rng,
        )
        shadow.follow(site.fleet)
        return shadow

    def check(self, name: str, config: LiveExperimentConfig) -> None:
        """Raises ConfigError for what no fleet could make possible."""
        declared = self._declared(name, config, b"", config.workers)
        if config.kind == "switchback":
            schedule_of(declared)

    def _switchback(self, logbook: Logbook, config: LiveExperimentConfig) -> Plan | None:
        if logbook.schedule is None:
            return None
        stage = LiveStage(
            self._site,
            logbook.declaration,
            config.flush,
            self._live.use,
            lambda: self._lookout.acting,
        )
        return Switchback(logbook, stage, self._lookout.hold, config.hold_until_in_flight)

    def _split(self, logbook: Logbook, config: LiveExperimentConfig) -> Plan:
        declared = logbook.declaration
        buckets = Bucketing(logbook.salt, config.part, UNITS[config.unit])
        arm_b = self._site.arms.make(declared.arms[1]).policy
        policies = [self._policy_a(config, declared), arm_b]
        policy = SplitPolicy(policies, buckets, declared.workers_b)
        both = RuledPolicy(policy, self._live.own.rule.unnamed())
        return Split(buckets, declared.workers_b, lambda: self._live.use(both))

    def _policy_a(self, config: LiveExperimentConfig, declared: Declaration) -> Policy:
        """The gateway's own goes on with all it knows; another begins anew."""
        if config.a is None and not config.a_settings:
            return self._live.own.policy
        return self._site.arms.make(declared.arms[0]).policy

    def _logbook(self, name: str, config: LiveExperimentConfig) -> Logbook:
        site = self._site
        salt = site.rng.randbytes(16) if config.salt is None else config.salt.encode()
        declared = self._declared(name, config, salt, self._pool(config))
        schedule = schedule_of(declared) if config.kind == "switchback" else None
        began = datetime.fromtimestamp(declared.began_at, UTC)
        path = site.folder / f"{name}-{began:%Y%m%dT%H%M%S.%f}.jsonl"
        file = RecordFile(path, self._in_thread, site.most_lines)
        return Logbook(declared, schedule, salt, file, site.clock)

    def _declared(
        self, name: str, config: LiveExperimentConfig, salt: bytes, pool: tuple[str, ...]
    ) -> Declaration:
        seed = self._site.rng.getrandbits(48) if config.seed is None else config.seed
        return declaration_of(
            name,
            config,
            self._site.arms,
            began_at=self._site.wall_clock(),
            seed=seed,
            salt=salt,
            pool=pool,
        )

    def _pool(self, config: LiveExperimentConfig) -> tuple[str, ...]:
        if config.kind != "canary":
            return ()
        workers = [record.identity.id for record in self._site.fleet.records()]
        unknown = sorted(set(config.workers) - set(workers))
        if unknown:
            raise ConfigError(
                f"workers of the pool that are not in the fleet: {', '.join(unknown)}; there are"
                f" {', '.join(workers) or 'none'}"
            )
        if len(workers) < 2 or len(set(config.workers)) >= len(workers):
            raise ConfigError(
                f"a canary needs a worker for each arm, and there are {len(workers)} workers,"
                f" {len(set(config.workers))} of them named for B"
            )
        if config.workers:
            return tuple(sorted(set(config.workers)))
        return pool_of(workers, config.part, self._site.rng)
