"""`radixgate simulate`: the same fleet and trace under one policy after the other."""

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError
from radixgate.loadgen.output_places import check_file
from radixgate.loadgen.reports.run_folder import read_run
from radixgate.loadgen.simulator.config import SimulateConfig
from radixgate.loadgen.simulator.dataset_config import DatasetConfig
from radixgate.loadgen.simulator.engine_fit import fitted
from radixgate.loadgen.simulator.engine_model import EngineModel, engine_named
from radixgate.loadgen.simulator.gateway import NewsRules
from radixgate.loadgen.simulator.objective import objective_of
from radixgate.loadgen.simulator.picture import picture
from radixgate.loadgen.simulator.planned import dataset_requests, is_schedule, schedule_requests
from radixgate.loadgen.simulator.results import Results, completion_rate, results_of, table
from radixgate.loadgen.simulator.rules import Rule, rule_named, rules_named
from radixgate.loadgen.simulator.simulation import SimulatedSite, Simulation
from radixgate.loadgen.simulator.trace import TracedRequest, is_closed_loop, jittered, read_trace
from radixgate.loadgen.simulator.workload import (
    SessionLimits,
    Workload,
    closed_loop,
    open_loop,
    sessions_of,
)
from radixgate.loadgen.workload_config import WorkloadConfig
from radixgate.policies.registry import PolicyConfigs

# Any pace: what is sent at once has none.
_NO_PACE = 1.0


def run_simulation(
    config: SimulateConfig,
    configs: PolicyConfigs | None = None,
    dataset: DatasetConfig | None = None,
    shapes: WorkloadConfig | None = None,
) -> int:
    """Compare, print and write. Raises ConfigError for what cannot be simulated."""
    check_file("--json", config.json)
    check_file("--plot", config.plot)
    configs = configs or PolicyConfigs()
    rules = rules_named(config.policy_names, configs)
    trial = Trial(config, dataset, shapes)
    if config.fit is not None:
        print(f"fitted: {_described(trial.engine)}", flush=True)
    for rule in rules.values():
        trial.check_fits(rule)
    title = trial.title()
    print(title, flush=True)
    results = {name: trial.run(rule) for name, rule in rules.items()}
    if config.json is not None:
        found = {"results": {name: one.as_json() for name, one in results.items()}}
        _write("--json", config.json, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    if config.plot is not None:
        _write("--plot", config.plot, picture(title, results).encode())
    print(table(results), flush=True)  # last: whoever reads it may have gone
    return 0


class Trial:
    """A fleet and a trace, on which any number of rules can be run alike."""

    def __init__(
        self,
        config: SimulateConfig,
        dataset: DatasetConfig | None = None,
        shapes: WorkloadConfig | None = None,
    ) -> None:
        """`dataset` and `shapes` say what is sent where there is no trace."""
        self._config = config
        self.engine = _engine(config)
        self._objective = objective_of(config.goodput)
        self._site = SimulatedSite(
            workers=config.workers,
            kv_blocks=config.kv_blocks,
            block_size=config.block_size,
            engine=self.engine,
            gateways=config.gateways,
            news=NewsRules(
                report_gap_s=config.report_gap,
                report_delay_s=config.report_delay,
                event_delay_s=config.event_delay,
                event_loss=config.event_loss,
                share_delay_s=config.share_delay,
                reports=not config.silent_workers,
                events=not config.silent_workers,
            ),
        )
        requests = _requests(config, dataset or DatasetConfig(), shapes or WorkloadConfig())
        self._sessions: Sequence[Sequence[TracedRequest]] = ()
        self._requests: Sequence[TracedRequest] = ()
        if is_closed_loop(requests):
            limits = SessionLimits(config.sessions, config.max_turns, config.think_cap)
            self._sessions = sessions_of(requests, limits, self._rng("sessions"))
        elif any(request.at_s < 0.0 for request in requests):
            raise ConfigError(
                f"{config.trace}: some requests have no timestamp; a closed loop has none at all,"
                " and each request a session"
            )
        else:
            self._requests = sorted(requests, key=lambda request: request.at_s)
        self._capacity = config.capacity

    def __len__(self) -> int:
        """Requests of a run."""
        return len(self._requests) or sum(map(len, self._sessions))

    def title(self) -> str:
        """What is sent, and how fast."""
        capacity, load = self.capacity(), self._config.load
        if self._paced:
            return (
                f"{len(self)} requests at {load * capacity:.2f}/s, {load:.0%} of a capacity of"
                f" {capacity:.2f}/s"
            )
        return (
            f"{len(self)} requests at once, whatever --load says: all have one time; capacity"
            f" {capacity:.2f}/s"
        )

    def check_fits(self, rule: Rule) -> None:
        """Raises ConfigError for a request that no worker can hold under this rule."""
        site, seed = self._site, self._config.seed
        Simulation(site, rule, seed).check_fits(self.workload(_NO_PACE))

    def capacity(self) -> float:
        """Requests a second: given, else measured once."""
        if self._capacity is None:
            oracle = rule_named("oracle", PolicyConfigs())
            at_once = self.workload(_NO_PACE).at_once()
            site = self._site
            run = Simulation(site, oracle, self._config.seed).run(at_once)
            self._capacity = completion_rate(run)
        return self._capacity

    def run(self, rule: Rule) -> Results:
        """At the configured load. Every rule is sent the same requests at the same times."""
        workload = self.workload(self._config.load * self.capacity())
        run = Simulation(self._site, rule, self._config.seed).run(workload)
        return results_of(run, self._objective)

    def workload(self, requests_per_s: float) -> Workload:
        """What is sent at this pace, the same each time."""
        if self._sessions:
            return closed_loop(self._sessions, requests_per_s, self._rng("starts"))
        return open_loop(self._requests, requests_per_s)

    @property
    def _paced(self) -> bool:
        times = [request.at_s for request in self._requests]
        return not times or min(times) < max(times)

    def _rng(self, purpose: str) -> random.Random:
        return _rng_for(self._config, purpose)


def _engine(config: SimulateConfig) -> EngineModel:
    preset = engine_named(config.engine)
    if config.fit is None:
        return preset
    records = read_run(Path(config.fit)).records
    return fitted(records, preset, shared_cores=config.shared_cores)


def _requests(
    config: SimulateConfig, dataset: DatasetConfig, shapes: WorkloadConfig
) -> Sequence[TracedRequest]:
    size = config.block_size
    if dataset.num_prompts is not None and dataset.dataset_name is None:
        raise ConfigError("--num-prompts is of --dataset-name; of a --trace, give --max-requests")
    if config.trace is None:
        requests = dataset_requests(dataset, shapes, config.seed, size)
    elif dataset.dataset_name is not None:
        raise ConfigError("--trace and --dataset-name both say what is sent: give one of them")
    elif is_schedule(Path(config.trace)):
        requests = schedule_requests(Path(config.trace), size)
    else:
        traced = read_trace(Path(config.trace), size, config.max_requests)
        return jittered(traced, _rng_for(config, "jitter")) if config.jitter else traced
    return requests[: config.max_requests]


def _rng_for(config: SimulateConfig, purpose: str) -> random.Random:
    return random.Random(f"{config.seed}/{purpose}")


def _described(engine: EngineModel) -> str:
    share = engine.neighbour_share
    beside = f", {share:.0%} longer for each other worker that computes" if share else ""
    return (
        f"a step {1e3 * engine.step_s:.3f} ms"
        f" + {1e6 * engine.prefill_token_s:.2f} us a prompt token"
        f" + {1e6 * engine.decode_row_s:.1f} us a decoding sequence"
        f" + {1e9 * engine.context_token_s:.2f} ns a token of their context,"
        f" {engine.chunk_tokens} prompt tokens at most{beside}"
    )


def _write(flag: str, where: str, content: bytes) -> None:
    path = Path(where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"{flag} {path} cannot be written: {error}") from error
