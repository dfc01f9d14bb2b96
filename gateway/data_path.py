"""What answers generations in one process: its books, its ways to the workers, limits and keys."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from radixgate.clock import Clock
from radixgate.fleet.fleet import Fleet
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.attempt import WorkerClient
from radixgate.gateway.choice.another_try import AnotherTry
from radixgate.gateway.choice.breakers import Breakers
from radixgate.gateway.choice.outliers import Outliers
from radixgate.gateway.choice.own_policy import let_decide
from radixgate.gateway.choice.retries import RetryRule
from radixgate.gateway.choice.retry_budget import ALWAYS, RetryBudget
from radixgate.gateway.choice.spared import Spared
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.entry.closed_door import ClosedDoor
from radixgate.gateway.entry.gatekeeper import Limits, generator_of
from radixgate.gateway.entry.generator import Generator
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.exchange.core import Core, PatienceRule
from radixgate.gateway.exchange.detour import Detour
from radixgate.gateway.exchange.forwarder import Forwarder
from radixgate.gateway.exchange.held_requests import HeldRequests
from radixgate.gateway.exchange.narrated import NarratedForwarder
from radixgate.gateway.heads.own_headers import OwnHeaders
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.loop.row_writes import RowWrites, open_ring
from radixgate.gateway.observe.metrics import GatewayMetrics, WorkerRow
from radixgate.gateway.observers import Observers
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.workers.mirror_file import MirrorFile
from radixgate.gateway.workers.own_names import OwnNames
from radixgate.gateway.workers.roster import Roster
from radixgate.gateway.workers.worker_factories import worker_factories
from radixgate.gateway.workers.worker_rows import worker_gauges


class ServedWorkers(Protocol):
    """The workers as the data path needs them."""

    @property
    def roster(self) -> Roster: ...

    @property
    def clients(self) -> Mapping[str, WorkerClient]:
        """By worker id; changes as workers come and go."""
        ...

    def check_soon(self, worker_id: str) -> None:
        """An attempt failed there."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """What can be changed while requests run: the next ones go by it."""

    config: GatewayConfig
    rules: GatewayRules
    keys: KeyRing


class DataPath:
    """Made, given its workers by `serve`; then its `generator` answers."""

    def __init__(
        self,
        first: Rules,
        policy: RuledPolicy,
        clock: Clock,
        rng: random.Random,
        processes: int = 1,
        names: OwnNames | None = None,
    ) -> None:
        """`processes`: how many share the fleet, and with it the retries that are always free.
        `names`: None, and they are like nobody's, whatever `rng` draws."""
        config, rules = first.config, first.rules
        self._clock = clock
        self._rng = rng
        self.names = OwnNames() if names is None else names
        self.deadlines = Deadlines(clock)
        # The parent of several processes streams nothing.
        streams = processes == config.processes
        in_rows = streams and config.row_writes
        ring = open_ring() if in_rows else None
        # Who takes what goes to many clients: what is really used, for the log.
        self.row_writes = "off" if not in_rows else "none" if ring is None else "io_uring"
        self.turn = LoopTurn(RowWrites(ring))
        self.fleet = Fleet(policy.policy, clock, rng, rules.fleet)
        self.prompts = PromptTokenizer()
        self.mirror_file = MirrorFile(rules.fleet.mirror.mirror_file)
        self._read_rows: Callable[[], list[WorkerRow]] = list
        self.metrics = GatewayMetrics(lambda: self._read_rows())
        self._check_timeout_s = config.health_check_timeout_secs
        self.factories = worker_factories(
            config,
            self.fleet,
            self.prompts,
            self.deadlines,
            self.turn,
            clock,
            rng,
            self.names,
            rules,
            self.mirror_file,
            self.metrics.watches,
            lambda: self._check_timeout_s,
        )
        reliability = rules.reliability
        self._breakers = Breakers(reliability, clock)
        self._spared = Spared(reliability.slow_start_secs, clock, rng)
        self._outliers = Outliers(reliability, clock)
        self.choice = WorkerChoice(self.fleet, self._breakers, self._spared, self._outliers)
        self.metrics.read_ejections = lambda: self._outliers.ejected_total
        self._budget = RetryBudget(
            reliability.retry_budget_ratio,
            self.metrics,
            clock,
            self.deadlines,
            -(-ALWAYS // processes),
        )
        self.own_headers = OwnHeaders(config.policy.encode(), self.names.request_ids)
        self.held = HeldRequests()
        self.stored = StoredResponses()
        self.limits = Limits.of(rules.limits, first.keys, clock)
        self.detour = Detour()
        # Who else changes the policy goes between.
        self.use_own_policy: Callable[[RuledPolicy], None] = partial(let_decide, self.fleet)
        self._keys = first.keys
        self._observers: Observers | None = None  # None: nobody is told
        self._core: Core | None = None  # None: it serves nobody yet
        self._generator: Generator | None = None

    @property
    def generator(self) -> Generator:
        """Of new requests; another one after `apply`."""
        assert self._generator is not None, "no workers were given"
        return self._generator

    def closed_door(self) -> ClosedDoor:
        """Who answers when nothing is begun any more."""
        assert self._core is not None
        return ClosedDoor(self._forwarder(self._core), self._core)

    def serve(self, workers: ServedWorkers, rules: Rules) -> None:
        """Answer with these workers, by these rules."""
        self._read_rows = lambda: worker_gauges(workers.roster, self.fleet)
        config = rules.config
        another_try = AnotherTry(
            RetryRule.of(config), self._budget, self.choice, self.metrics, self._rng
        )
        self._core = Core(
            choice=self.choice,
            asking=Asking(self.fleet, self.prompts, self.stored, workers.roster.unheard_of),
            clients=workers.clients,
            on_worker_failed=workers.check_soon,
            policy=config.policy,
            patience=PatienceRule.of(config),
            another_try=another_try,
            metrics=self.metrics,
            deadlines=self.deadlines,
            turn=self.turn,
            clock=self._clock,
            rng=self._rng,
            request_ids=self.names.request_ids,
            held=self.held,
            stored=self.stored,
            own_headers=self.own_headers,
            passes_authorization=_passes_authorization(rules),
        )
        self._open(self._core, rules.keys)

    def observe(self, observers: Observers) -> None:
        """Tell them of each decision and of each new request from now on."""
        assert self._core is not None
        self._observers = observers
        self.fleet.journal = observers.journal
        self.metrics.aim(*observers.aims_s)
        self.metrics.read_dropped = observers.dropped
        self._open(self._core, self._keys)

    def apply(self, rules: Rules, policy: RuledPolicy | None) -> None:
        """From now on new requests go by these; what runs ends by the ones it began with.

        `policy`: None if it stays as it is, with what it remembers. Raises nothing.
        """
        core, config, reliability = self._core, rules.config, rules.rules.reliability
        assert core is not None
        if policy is not None:
            self.use_own_policy(policy)
        self._breakers.change(reliability)
        self._outliers.change(reliability)
        self._spared.change(reliability.slow_start_secs)
        self._budget.change(reliability.retry_budget_ratio)
        self._check_timeout_s = config.health_check_timeout_secs
        self.own_headers = OwnHeaders(config.policy.encode(), self.names.request_ids)
        self.limits = self.limits.changed(rules.rules.limits, rules.keys, self._clock)
        self._core = replace(
            core,
            policy=config.policy,
            patience=PatienceRule.of(config),
            another_try=replace(core.another_try, rule=RetryRule.of(config)),
            own_headers=self.own_headers,
            passes_authorization=_passes_authorization(rules),
        )
        self._open(self._core, rules.keys)

    def _open(self, core: Core, keys: KeyRing) -> None:
        self._keys = keys
        self._generator = generator_of(self._forwarder(core), core, keys, self.limits)

    def _forwarder(self, core: Core) -> Forwarder:
        told = self._observers
        if told is None or not told.tellers:
            return Forwarder(core, self.detour)
        return NarratedForwarder(core, self.detour, told.tellers, told.opening)


def _passes_authorization(rules: Rules) -> bool:
    """What a client sends as its key is a worker's, and not the gateway's own."""
    return not rules.keys.used and rules.rules.headers.to_worker()(b"authorization")
