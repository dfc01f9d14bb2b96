"""What `radixgate experiment` can be told."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError

VERBS = ("report",)


@dataclass(frozen=True, slots=True)
class ExperimentConfig:
    """`radixgate experiment report FILE...`: what the records of one experiment say."""

    words: tuple[str, ...] = knob(
        (),
        help="`report`, then the files of records (JSON lines) of one experiment; they stand "
        "first, and need no flag",
    )
    output_folder: str | None = knob(
        None,
        help="write experiment.json, experiment.md and experiment.html there; none: only print",
    )

    def __post_init__(self) -> None:
        if not self.words or self.words[0] not in VERBS:
            raise ConfigError("write it as: radixgate experiment report FILE...")
        if len(self.words) < 2:
            raise ConfigError("report needs a file of records: radixgate experiment report FILE...")

    @property
    def files(self) -> Sequence[Path]:
        """In the order given; together they are one experiment."""
        return [Path(word) for word in self.words[1:]]
