"""What `radixgate` can do: each command, what it can be told, and what runs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from radixgate.configs.command import Command
from radixgate.configs.load import Settings
from radixgate.fleet.fleet import FleetConfig
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.experiments_config import (
    ExperimentLogConfig,
    LiveExperimentConfig,
)
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.header_rules import HeaderConfig
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.observe_config import ObserveConfig
from radixgate.gateway.settings.read_settings import gateway_settings, read_again
from radixgate.gateway.settings.refused_flags import REFUSED as GATEWAY_REFUSED
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.tls_config import TlsConfig
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.batch.config import BatchConfig
from radixgate.loadgen.compare.config import CompareConfig
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.demo_config import DemoConfig
from radixgate.loadgen.experiments.config import ExperimentConfig
from radixgate.loadgen.refused_flags import REFUSED as BENCH_REFUSED
from radixgate.loadgen.replay.config import ReplayConfig
from radixgate.loadgen.reports.report_config import ReportConfig
from radixgate.loadgen.simulator.config import SimulateConfig
from radixgate.loadgen.simulator.dataset_config import DatasetConfig
from radixgate.loadgen.study_config import StudyConfig
from radixgate.loadgen.workload_config import WorkloadConfig
from radixgate.policies.settings import POLICY_SECTIONS, policy_configs
from radixgate.radix_mirror.mirror import MirrorConfig
from radixgate.up_config import UpConfig
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.settings.refused_flags import REFUSED as WORKER_REFUSED
from radixgate.worker.settings.server_config import ServerConfig


@dataclass(frozen=True, slots=True)
class Entry:
    """A command, and what runs it once its settings are read. `run` returns the exit code."""

    command: Command
    run: Callable[[Settings], int]
    extras: str = ""  # the optional dependencies it cannot do without, as pip is told them


# The imports inside these functions are of optional dependencies: a gateway needs no torch, and
# only the bench draws progress bars.
def _worker(settings: Settings) -> int:
    from radixgate.worker.serve import run_worker

    return run_worker(settings.of(EngineConfig), settings.of(ServerConfig))


def _gateway(settings: Settings) -> int:
    from radixgate.gateway.serve import run_gateway

    return run_gateway(gateway_settings(settings), lambda: read_again(settings))


def _bench(settings: Settings) -> int:
    from radixgate.loadgen.bench import run_bench

    return run_bench(
        settings.of(BenchConfig),
        settings.of(WorkloadConfig),
        settings.of(ArrivalConfig),
        settings.of(StudyConfig),
    )


def _batch(settings: Settings) -> int:
    from radixgate.loadgen.batch.run import run_batch

    return run_batch(settings.of(BatchConfig))


def _compare(settings: Settings) -> int:
    from radixgate.loadgen.compare.run import run_compare

    return run_compare(
        settings.of(CompareConfig),
        settings.of(BenchConfig),
        settings.of(WorkloadConfig),
        settings.of(ArrivalConfig),
    )


def _report(settings: Settings) -> int:
    from radixgate.loadgen.report_command import run_report

    return run_report(settings.of(ReportConfig))


def _experiment(settings: Settings) -> int:
    from radixgate.loadgen.experiments.report import run_report

    return run_report(settings.of(ExperimentConfig))


def _simulate(settings: Settings) -> int:
    from radixgate.loadgen.simulator.simulate import run_simulation

    return run_simulation(
        settings.of(SimulateConfig),
        policy_configs(settings),
        settings.of(DatasetConfig),
        settings.of(WorkloadConfig),
    )


def _replay(settings: Settings) -> int:
    from radixgate.loadgen.replay.run import run_replay

    return run_replay(settings.of(ReplayConfig), policy_configs(settings))


def _demo(settings: Settings) -> int:
    from radixgate.loadgen.demo import run_demo

    return run_demo(settings.of(DemoConfig))


def _up(settings: Settings) -> int:
    from radixgate.up import run_up

    return run_up(settings.of(UpConfig))


ENTRIES: Mapping[str, Entry] = {
    entry.command.name: entry
    for entry in (
        Entry(
            Command(
                "up",
                "Start a gateway and workers on this machine, and stop them together.",
                {"up": UpConfig},
            ),
            _up,
            "worker",
        ),
        Entry(
            Command(
                "gateway",
                "The front door: one address for a fleet of workers.",
                {
                    "gateway": GatewayConfig,
                    "access": AccessConfig,
                    "headers": HeaderConfig,
                    "limits": LimitsConfig,
                    "reliability": ReliabilityConfig,
                    "fleet": FleetConfig,
                    "mirror": MirrorConfig,
                    "tls": TlsConfig,
                    "observe": ObserveConfig,
                    "experiment_log": ExperimentLogConfig,
                    **POLICY_SECTIONS,
                },
                GATEWAY_REFUSED,
                named={"experiments": LiveExperimentConfig},
            ),
            _gateway,
        ),
        Entry(
            Command(
                "worker",
                "One replica of one model: engine, HTTP and gRPC server.",
                {"engine": EngineConfig, "server": ServerConfig},
                WORKER_REFUSED,
            ),
            _worker,
            "worker",
        ),
        Entry(
            Command(
                "bench",
                "Load a server and report how it answered.",
                {
                    "bench": BenchConfig,
                    "workload": WorkloadConfig,
                    "arrivals": ArrivalConfig,
                    "study": StudyConfig,
                },
                BENCH_REFUSED,
            ),
            _bench,
            "bench",
        ),
        Entry(
            Command(
                "batch",
                "Answer a file of requests through a fleet, resumable at any time.",
                {"batch": BatchConfig},
                first="--input",
            ),
            _batch,
            "bench",
        ),
        Entry(
            Command(
                "compare",
                "Play one schedule under several policies or fleets, and report what differed.",
                {
                    "compare": CompareConfig,
                    "bench": BenchConfig,
                    "workload": WorkloadConfig,
                    "arrivals": ArrivalConfig,
                },
                BENCH_REFUSED,
            ),
            _compare,
            "bench",
        ),
        Entry(
            Command(
                "report",
                "Make the reports of a run or a comparison anew from what its folder recorded.",
                {"report": ReportConfig},
                first="--folder",
            ),
            _report,
            "bench",
        ),
        Entry(
            Command(
                "experiment",
                "Report what the records of a live experiment say, and what they cannot.",
                {"experiment": ExperimentConfig},
                first="--words",
                words="report FILE...",
            ),
            _experiment,
            "bench",
        ),
        Entry(
            Command(
                "simulate",
                "Compare policies on a trace, over a fleet in virtual time.",
                {
                    "simulate": SimulateConfig,
                    "dataset": DatasetConfig,
                    "workload": WorkloadConfig,
                    **POLICY_SECTIONS,
                },
            ),
            _simulate,
            "bench",
        ),
        Entry(
            Command(
                "replay",
                "Decide a gateway's recorded decisions again under another policy, and compare.",
                {"replay": ReplayConfig, **POLICY_SECTIONS},
                first="--log",
            ),
            _replay,
            "bench",
        ),
        Entry(
            Command(
                "demo",
                "Show what routing by cache is worth, on two workers of this machine.",
                {"demo": DemoConfig},
            ),
            _demo,
            "worker,bench",
        ),
    )
}
