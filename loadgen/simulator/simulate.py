"""`radixgate simulate`: the same fleet and trace under one policy after the other."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.config import SimulateConfig
from radixgate.loadgen.simulator.engine_model import engine_named
from radixgate.loadgen.simulator.gateway import News
from radixgate.loadgen.simulator.results import Results, completion_rate, results_of, table
from radixgate.loadgen.simulator.rules import Rule, rule_named
from radixgate.loadgen.simulator.simulation import Simulation, Site
from radixgate.loadgen.simulator.trace import TracedRequest, is_closed_loop, jittered, read_trace
from radixgate.loadgen.simulator.workload import (
    SessionLimits,
    Workload,
    closed_loop,
    open_loop,
    sessions_of,
)
from radixgate.policies.registry import PolicyConfigs

# Any pace: what is sent at once has none.
_NO_PACE = 1.0


def run_simulation(config: SimulateConfig, configs: PolicyConfigs | None = None) -> int:
    """Compare, print and write. Raises ConfigError for what cannot be simulated."""
    configs = configs or PolicyConfigs()
    rules = {name: rule_named(name, configs) for name in config.policy_names}
    trial = Trial(config)
    capacity = trial.capacity()
    pace = config.load * capacity
    print(
        f"{len(trial)} requests at {pace:.2f}/s, {config.load:.0%} of a capacity of"
        f" {capacity:.2f}/s",
        flush=True,
    )
    results = {name: trial.run(rule) for name, rule in rules.items()}
    print(table(results), flush=True)
    if config.json is not None:
        _write(Path(config.json), results)
    return 0


class Trial:
    """A fleet and a trace, on which any number of rules can be run alike."""

    def __init__(self, config: SimulateConfig) -> None:
        self._config = config
        self._site = Site(
            workers=config.workers,
            kv_blocks=config.kv_blocks,
            block_size=config.block_size,
            engine=engine_named(config.engine),
            gateways=config.gateways,
            news=News(
                report_gap_s=config.report_gap,
                report_delay_s=config.report_delay,
                event_delay_s=config.event_delay,
                event_loss=config.event_loss,
            ),
        )
        requests = read_trace(Path(config.trace), config.block_size, config.max_requests)
        self._sessions: Sequence[Sequence[TracedRequest]] = ()
        self._requests: Sequence[TracedRequest] = ()
        if is_closed_loop(requests):
            limits = SessionLimits(config.sessions, config.max_turns, config.think_cap)
            self._sessions = sessions_of(requests, limits, self._rng("sessions"))
        elif any(request.at_s < 0.0 for request in requests):
            raise ConfigError(f"{config.trace}: some requests have neither timestamp nor session")
        else:
            self._requests = requests
        self._capacity = config.capacity

    def __len__(self) -> int:
        """Requests of a run."""
        return len(self._requests) or sum(map(len, self._sessions))

    def capacity(self) -> float:
        """Requests a second: given, else measured once."""
        if self._capacity is None:
            oracle = rule_named("oracle", PolicyConfigs())
            at_once = self._workload(_NO_PACE).at_once()
            site = self._site
            run = Simulation(site, oracle, self._config.seed).run(at_once)
            self._capacity = completion_rate(run)
        return self._capacity

    def run(self, rule: Rule) -> Results:
        """At the configured load. Every rule is sent the same requests at the same times."""
        workload = self._workload(self._config.load * self.capacity())
        return results_of(Simulation(self._site, rule, self._config.seed).run(workload))

    def _workload(self, requests_per_s: float) -> Workload:
        if self._sessions:
            return closed_loop(self._sessions, requests_per_s, self._rng("starts"))
        requests = self._requests
        if self._config.jitter:
            requests = jittered(requests, self._rng("jitter"))
        return open_loop(sorted(requests, key=lambda r: r.at_s), requests_per_s)

    def _rng(self, purpose: str) -> random.Random:
        return random.Random(f"{self._config.seed}/{purpose}")


def _write(path: Path, results: Mapping[str, Results]) -> None:
    found = {"results": {name: one.as_json() for name, one in results.items()}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    except OSError as error:
        raise ConfigError(f"--json {path} cannot be written: {error}") from error
