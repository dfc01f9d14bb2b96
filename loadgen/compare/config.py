"""What `radixgate compare` can be told beside the bench's settings."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError
from radixgate.loadgen.server_url import check_url


@dataclass(frozen=True, slots=True)
class CompareConfig:
    """The arms, how often each is measured, and in which state it begins.

    Either policies, each with a gateway and workers of its own that are started for one run and
    stopped after it, or gateways that are there already. The first arm is the baseline.
    """

    policies: tuple[str, ...] = knob(
        (), help="policies to compare, on processes started fresh for each run"
    )
    urls: tuple[str, ...] = knob((), help="gateways to compare, each as NAME=URL or URL")
    rounds: int = knob(
        2, help="runs of each arm; every second round is in reverse order (ABBA), against drift"
    )
    cache: str = knob(
        "flush",
        help="of gateways that are there: flush caches and mirrors before each run, or keep what "
        "the run before left",
        choices=("flush", "keep"),
    )
    model_path: str = knob("smollm2", help="model of the workers that are started")
    workers: int = knob(2, help="workers of each fleet that is started")
    page_size: int = knob(16, help="page size of their caches", unit="tokens")
    max_total_tokens: int | None = knob(
        None, help="KV pool of each of them; none: each works it out", unit="tokens"
    )
    threads: int | None = knob(
        None, help="threads of each of them; none: the cores divided by the workers"
    )
    start_timeout_s: float = knob(300.0, help="how long one may take to start", unit="s")

    def __post_init__(self) -> None:
        if bool(self.policies) == bool(self.urls):
            raise ConfigError("give either --policies or --urls, at least two of them")
        names = [arm.name for arm in self.arms]
        if len(names) < 2 or len(set(names)) < len(names):
            raise ConfigError(f"a comparison needs two arms with different names, not {names}")
        for arm in self.arms:
            if arm.url is not None:
                check_url("--urls", arm.url)
        for name in ("rounds", "workers", "page_size", "max_total_tokens", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"--{name.replace('_', '-')} must be at least 1, not {value}")

    @property
    def arms(self) -> tuple["ComparedArm", ...]:
        """In the order given; the first is the baseline."""
        if self.policies:
            return tuple(ComparedArm(policy, policy, None) for policy in self.policies)
        return tuple(_arm(text) for text in self.urls)

    @property
    def order(self) -> tuple[tuple["ComparedArm", int], ...]:
        """The runs one after the other, each with its round."""
        return tuple(
            (arm, number)
            for number in range(self.rounds)
            for arm in (self.arms if number % 2 == 0 else self.arms[::-1])
        )


@dataclass(frozen=True, slots=True)
class ComparedArm:
    """One side of a comparison."""

    name: str
    policy: str | None  # of a fleet that is started; None: it is there already
    url: str | None  # of a gateway that is there


def _arm(text: str) -> ComparedArm:
    name, equals, url = text.partition("=")
    if not equals or "/" in name:
        name, url = text.removeprefix("http://").rstrip("/"), text
    return ComparedArm(name, None, url.rstrip("/"))
