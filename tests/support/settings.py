"""A small command with every kind of knob, for tests of flags, files and pages."""

from dataclasses import dataclass

from radixgate.configs.command import Command, Refusal
from radixgate.configs.declare import knob
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class DoorConfig:
    """Where the door listens.

    A second paragraph that no page shows.
    """

    port: int = knob(8000, help="port to listen on")
    host: str = knob("127.0.0.1", help="address to listen on", flags=["--address"])
    worker_urls: tuple[str, ...] = knob((), help="workers behind the door")
    grace_s: float = knob(30.0, help="time for work in flight at the end", unit="s")
    metrics: bool = knob(True, help="serve /metrics")
    cache_dir: str | None = knob(None, help="folder; none: no cache", env="DOOR_CACHE_DIR")
    depths: tuple[int, ...] = knob((1, 2), help="depths that are tried")


@dataclass(frozen=True, slots=True)
class RuleConfig:
    policy: str = knob("cache_aware", help="the rule", choices=["random", "cache_aware"])
    threshold: float | None = knob(None, help="100 % is all; none: the rule decides")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    model_path: str = knob(help="the model")


@dataclass(frozen=True, slots=True)
class BellConfig:
    """A bell at the door."""

    tone: str = knob(help="what it sounds like")
    volume: int = knob(3, help="how loud it is")

    def __post_init__(self) -> None:
        if self.volume < 0:
            raise ConfigError(f"volume is {self.volume}, it cannot be negative")


DOOR = Command(
    "door",
    "A door for tests.",
    {"door": DoorConfig, "rule": RuleConfig},
    refused={
        "--nnodes": Refusal("one worker is one node", accepts=("1",)),
        "--speculate": Refusal("draft tokens are not supported"),
        "--disable-graphs": Refusal("", accepts=("",)),
    },
    named={"bells": BellConfig},
)
MODEL = Command("model", "A command with a setting that must be given.", {"model": ModelConfig})
