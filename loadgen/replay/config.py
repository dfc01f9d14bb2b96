"""What `radixgate replay` can be told."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ReplayConfig:
    """A decision log, and the policy that decides it again."""

    log: str = knob(help="file that --decision-log wrote, plain or gzip; also the first word")
    policy: str | None = knob(None, help="who decides again; none: the policy that was recorded")
    seed: int | None = knob(
        None, help="of what the policy draws; none: the recorded one, which repeats its ties"
    )
    show: int = knob(20, help="differing decisions that are listed")
    json: str | None = knob(
        None, help="write the report there, with up to 10,000 differing decisions; none: only print"
    )

    def __post_init__(self) -> None:
        if self.show < 0:
            raise ConfigError(f"--show cannot be negative: {self.show}")
