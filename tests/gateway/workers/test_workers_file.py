"""What flags and the file of workers name, by address."""

from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.gateway.workers.workers_file import WorkerEntry, configured_workers
from small_gateway import small_gateway


async def test_a_worker_that_is_spelt_twice_is_one(tmp_path: Path) -> None:
    file = tmp_path / "workers.yaml"
    file.write_text("workers:\n  - url: HTTP://A:1\n  - {url: 'http://b:2/', labels: {zone: x}}\n")
    async with small_gateway() as gateway:
        roster = gateway.gateway.workers.roster
        named = configured_workers(("http://a:1", "http://a:1/"), str(file), roster)
        assert named == {
            "a:1": WorkerEntry("http://a:1"),
            "b:2": WorkerEntry("http://b:2", labels={"zone": "x"}),
        }
        with pytest.raises(ConfigError, match="worker b:2 is given twice"):
            configured_workers(("http://b:2",), str(file), roster)
        with pytest.raises(ConfigError, match="worker a:1 is given twice"):
            configured_workers(("https://a:1",), str(file), roster)
