"""What `radixgate up` starts: one gateway and the workers behind it."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_port
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class UpConfig:
    """A gateway and its workers as children of one process, all on this machine."""

    model_path: str = knob("smollm2", help="the model of every worker, as for `radixgate worker`")
    workers: int = knob(2, help="how many workers")
    host: str = knob("127.0.0.1", help="address the gateway listens on; workers stay on loopback")
    port: int = knob(8000, help="port the gateway listens on; 0 picks a free one and prints it")
    policy: str = knob("kv_cost", help="the routing policy, as for `radixgate gateway`")
    page_size: int = knob(16, help="page size of the workers' caches", unit="tokens")
    max_total_tokens: int | None = knob(
        None, help="KV pool of each worker; if not given, each works it out", unit="tokens"
    )
    threads: int | None = knob(
        None, help="threads of each worker; if not given, the cores divided by the workers"
    )
    start_timeout_s: float = knob(
        300.0,
        help="how long a child may take until it is ready; the first start converts the model",
        unit="s",
    )
    drain_s: float = knob(
        30.0,
        help="how long answers may run on after Ctrl-C before their worker is killed",
        unit="s",
    )

    def __post_init__(self) -> None:
        check_port("port", self.port)
        if self.workers < 1:
            raise ConfigError(f"--workers {self.workers}: at least 1")
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"--threads {self.threads}: at least 1")
