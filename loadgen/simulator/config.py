"""What `radixgate simulate` can be told."""

import math
from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.engine_model import ENGINES
from radixgate.loadgen.simulator.objective import objective_of


@dataclass(frozen=True, slots=True)
class SimulateConfig:
    """A fleet, a trace, and the policies that are compared on them."""

    trace: str | None = knob(
        None,
        help="file of JSON lines, plain or gzip: timestamp (ms), input_length, output_length, "
        "hash_ids; or session, turn and think (s) instead of timestamp: then a closed loop; or a "
        "schedule that bench wrote; none: --dataset-name says what is sent",
    )
    policies: str = knob(
        "sglang_cache_aware,kv_cost,oracle", help="names of policies, with commas between them"
    )
    workers: int = knob(8, help="workers of the fleet")
    kv_blocks: int = knob(4_000, help="KV memory of each worker", unit="blocks")
    block_size: int = knob(512, help="tokens a block, as the trace has them", unit="tokens")
    engine: str = knob("study-70b", help="how long a step takes", choices=tuple(ENGINES))
    load: float = knob(0.8, help="pace of the requests as a share of capacity")
    capacity: float | None = knob(
        None,
        help="requests a second that count as capacity; none: measured, as answers a second over "
        "one cache of the total size when everything is sent at once",
        unit="requests/s",
    )
    fit: str | None = knob(
        None,
        help="folder of a bench run (--output-folder) that step times are fitted to; the chunk "
        "stays that of --engine; none: --engine as it is",
    )
    shared_cores: bool = knob(
        False,
        help="the workers of --fit's run shared the cores of one machine, and those simulated do: "
        "fitted too is by how much one that computes slows each other down",
    )
    seed: int = knob(0, help="of jitter, session starts, and everything that draws")
    json: str | None = knob(None, help="write the results there; none: only print them")
    plot: str | None = knob(None, help="write an HTML page with plots there; none: no page")
    goodput: tuple[str, ...] = knob(
        (), help="objective that a good request keeps, in ms: ttft:2000 e2e:30000 tpot:60"
    )
    jitter: bool = knob(True, help="spread requests evenly inside the bins of a binned trace")
    max_requests: int | None = knob(None, help="read no more of the trace; none: all of it")

    sessions: int = knob(400, help="closed loop: sessions that are replayed at most")
    max_turns: int = knob(60, help="closed loop: turns of each session at most")
    think_cap: float = knob(20.0, help="closed loop: longest pause before a turn", unit="s")

    gateways: int = knob(1, help="gateways before the same workers")
    share_delay: float | None = knob(
        None,
        help="gateways tell each other what they send, in batches of so long; none: they know "
        "only what the workers report",
        unit="s",
    )
    silent_workers: bool = knob(
        False, help="workers report neither load nor KV, as servers of others over HTTP"
    )
    report_gap: float = knob(0.02, help="shortest time between a worker's load reports", unit="s")
    report_delay: float = knob(0.0, help="how long a load report is on its way", unit="s")
    event_delay: float = knob(0.0, help="how long a KV update is on its way", unit="s")
    event_loss: float = knob(0.0, help="share of the KV updates that are lost, from 0 to 1")

    def __post_init__(self) -> None:
        for name in ("workers", "kv_blocks", "block_size", "sessions", "max_turns", "gateways"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{_flag(name)} must be at least 1, not {getattr(self, name)}")
        for name in ("think_cap", "report_gap", "report_delay", "event_delay"):
            if not getattr(self, name) >= 0.0:
                raise ConfigError(f"{_flag(name)} cannot be negative: {getattr(self, name):g}")
        if self.share_delay is not None and not self.share_delay >= 0.0:
            raise ConfigError(f"--share-delay cannot be negative: {self.share_delay:g}")
        if self.shared_cores and self.fit is None:
            raise ConfigError("--shared-cores says how the run of --fit is read: give --fit too")
        objective_of(self.goodput)
        for name in ("load", "capacity"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < math.inf:
                raise ConfigError(f"{_flag(name)} must be over 0 and finite, not {value:g}")
        if not 0.0 <= self.event_loss < 1.0:
            raise ConfigError(f"--event-loss must be from 0 to below 1, not {self.event_loss:g}")
        if self.max_requests is not None and self.max_requests < 1:
            raise ConfigError(f"--max-requests must be at least 1, not {self.max_requests}")
        if not self.policy_names:
            raise ConfigError("--policies names none")

    @property
    def policy_names(self) -> tuple[str, ...]:
        """In order, each once."""
        names = (name.strip() for name in self.policies.split(","))
        return tuple(dict.fromkeys(name for name in names if name))


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
