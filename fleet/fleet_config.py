"""The settings of a fleet and its mirrors."""

from dataclasses import dataclass, field

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_finite
from radixgate.errors import ConfigError
from radixgate.radix_mirror.mirror import MirrorConfig


@dataclass(frozen=True, slots=True)
class FleetConfig:
    """What the fleet assumes where nothing is known."""

    prefill_speed_guess: float = knob(
        1_000.0,
        help="prompt tokens a worker computes, taken while no worker of its model has told",
        unit="tokens/s",
    )
    mirror: MirrorConfig = field(default_factory=MirrorConfig)

    def __post_init__(self) -> None:
        check_finite(self)
        if not self.prefill_speed_guess > 0.0:
            raise ConfigError(
                f"prefill_speed_guess is {self.prefill_speed_guess:g} tokens/s, it must be over 0"
            )
