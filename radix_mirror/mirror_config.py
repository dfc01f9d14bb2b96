"""What bounds a mirror."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_finite
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class MirrorConfig:
    """Bounds of what is believed without being reported."""

    mirror_ttl_s: float = knob(
        1_800.0, help="a worker without KV events is believed to forget after so long", unit="s"
    )
    mirror_file: str | None = knob(
        None,
        help="file to which a gateway that ends writes what its workers have reported, and from"
        " which the next one begins: a worker's share counts once its digest agrees",
    )
    mirror_budget_bytes: int = knob(
        512 * 1024 * 1024,
        help="memory of a mirror, overhead included; beyond it what is only believed leaves first,"
        " what workers report stays",
        unit="bytes",
    )

    def __post_init__(self) -> None:
        check_finite(self)
        if self.mirror_ttl_s < 0.0:
            raise ConfigError(f"mirror_ttl_s is {self.mirror_ttl_s:g}, it cannot be negative")
        if self.mirror_budget_bytes < 0:
            raise ConfigError(
                f"mirror_budget_bytes is {self.mirror_budget_bytes}, it cannot be negative"
            )
