"""The experiment that docs/experiments.md shows is one that the gateway takes."""

import re
from pathlib import Path

from radixgate.analysis.experiments.metrics import NAMES
from radixgate.commands import ENTRIES
from radixgate.configs.load import load
from radixgate.gateway.settings.experiments_config import LiveExperimentConfig

PAGE = Path(__file__).parents[3] / "docs/experiments.md"


def test_the_settings_it_shows_are_taken(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "gateway.yaml"
    path.write_text(shown)
    command = ENTRIES["gateway"].command
    found = load(
        command, ["--config", str(path), "--worker-urls", "http://127.0.0.1:1"], environ={}
    )
    spread = found.named_of(LiveExperimentConfig)["spread"]
    assert spread.kind == "switchback"
    assert spread.block_s >= 2 * spread.washout_s
    assert set(spread.metrics) <= set(NAMES)
