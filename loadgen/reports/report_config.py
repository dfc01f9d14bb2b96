"""What `radixgate report` can be told."""

from dataclasses import dataclass
from pathlib import Path

from radixgate.configs.declare import knob


@dataclass(frozen=True, slots=True)
class ReportConfig:
    """Which run, or which comparison."""

    folder: str = knob(help="the folder of a bench or a comparison (--output-folder)")

    @property
    def path(self) -> Path:
        return Path(self.folder)
