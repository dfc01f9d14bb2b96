"""`radixgate up` with children that only announce themselves: order, failures, and what is said."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from radixgate.commands import ENTRIES
from radixgate.configs.load import load
from radixgate.errors import ConfigError
from radixgate.household import Household
from radixgate.up import run_up, serve
from radixgate.up_config import UpConfig

pytestmark = pytest.mark.slow  # real processes

FAKE = Path(__file__).parent / "support" / "fake_household.py"


class Said:
    """What `up` printed, and what is to happen when it prints some text."""

    def __init__(self, when: str = "", then: Callable[[], None] = lambda: None) -> None:
        self.lines: list[str] = []
        self._when = when
        self._then = then

    def __call__(self, text: str) -> None:
        self.lines.append(text)
        if self._when and self._when in text:
            self._then()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def up(config: UpConfig, journal: Path, said: Said) -> int:
    program = (sys.executable, "-I", "-S", str(FAKE), str(journal))
    async with asyncio.timeout(30):
        return await serve(Household(config, program=program, say=said), said)


def noted(journal: Path, what: str) -> list[str]:
    """Commands whose line in the journal ends with `what`, in order."""
    return [line.split()[0] for line in journal.read_text().splitlines() if line.endswith(what)]


async def test_ctrl_c_stops_the_gateway_before_the_workers(tmp_path: Path) -> None:
    journal, said = tmp_path / "journal", Said("Try, in another terminal", interrupt)
    assert await up(UpConfig(model_path="toy"), journal, said) == 0
    assert noted(journal, "stops") == ["gateway", "worker", "worker"]
    assert said.lines[-1] == "SIGINT: stopping the gateway, then the workers"


async def test_each_child_gets_a_ready_line_and_then_it_is_said_what_to_try(tmp_path: Path) -> None:
    said = Said("Try, in another terminal", interrupt)
    await up(UpConfig(model_path="toy"), tmp_path / "journal", said)
    first, second, gateway, to_try, *_ = said.lines
    assert {first[:10], second[:10]} == {"[worker 1]", "[worker 2]"}
    assert first.endswith("radixgate worker ready http=127.0.0.1:1 grpc=127.0.0.1:2 model=toy")
    assert gateway.startswith("[gateway] radixgate gateway ready on http://127.0.0.1:")
    url = gateway.split()[5]
    assert f"curl -N {url}/v1/chat/completions" in to_try
    assert '"model": "toy"' in to_try


async def test_the_bench_that_is_shown_has_the_flags_it_is_given(tmp_path: Path) -> None:
    said = Said("Try, in another terminal", interrupt)
    await up(UpConfig(model_path="toy", workers=1), tmp_path / "journal", said)
    to_try = next(text for text in said.lines if "bench" in text)
    command = to_try.partition("bench ")[2].partition("\n\n")[0]
    load(ENTRIES["bench"].command, shlex.split(command.replace("\\\n", " ")), environ={})


async def test_the_flags_of_the_children_are_flags_that_they_have(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    config = UpConfig(model_path="toy", workers=1, port=0, max_total_tokens=4096, drain_s=2.5)
    await up(config, journal, Said("Try, in another terminal", interrupt))
    told = [line.split() for line in journal.read_text().splitlines()]
    for command, _, *flags in told[:2]:
        load(ENTRIES[command].command, flags, environ={})
    worker, gateway = told[0], told[1]
    assert worker[worker.index("--max-total-tokens") + 1] == "4096"
    assert gateway[gateway.index("--worker-urls") + 1] == "grpc://127.0.0.1:2"
    assert gateway[gateway.index("--shutdown-grace-period-secs") + 1] == "2.5"


async def test_a_child_that_ends_early_is_shown_and_everything_is_stopped(tmp_path: Path) -> None:
    journal, said = tmp_path / "journal", Said()
    assert await up(UpConfig(model_path="broken", workers=1), journal, said) == 1
    assert said.lines == [
        "[worker 1] no such model",
        "stopping: worker 1 ended with code 3 before it was ready",
    ]
    assert noted(journal, "stops") == []


async def test_it_ends_when_no_worker_is_left(tmp_path: Path) -> None:
    journal, said = tmp_path / "journal", Said()
    assert await up(UpConfig(model_path="fleeting"), journal, said) == 1
    assert "worker 1 ended with code 4" in said.lines
    assert "worker 2 ended with code 4" in said.lines
    assert said.lines[-1] == "stopping: no worker is left"
    assert noted(journal, "stops") == ["gateway"]


async def test_it_ends_when_the_gateway_is_gone(tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def kill_the_gateway() -> None:
        pid = next(line.split()[1] for line in journal.read_text().splitlines() if "gatew" in line)
        os.kill(int(pid), signal.SIGKILL)

    said = Said("Try, in another terminal", kill_the_gateway)
    assert await up(UpConfig(model_path="toy"), journal, said) == 1
    assert said.lines[-2:] == ["gateway was ended by SIGKILL", "stopping: the gateway is gone"]
    assert noted(journal, "stops") == ["worker", "worker"]


async def test_ctrl_c_while_it_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    journal, said = tmp_path / "journal", Said("[worker", interrupt)
    assert await up(UpConfig(model_path="toy", workers=1), journal, said) == 0
    pids = [int(line.split()[1]) for line in journal.read_text().splitlines()]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_another_policy_is_another_gateway_before_the_same_workers(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    program = (sys.executable, "-I", "-S", str(FAKE), str(journal))
    household = Household(UpConfig(model_path="toy", policy="round_robin"), program=program)
    async with asyncio.timeout(30):
        await household.start()
        first = household.url
        await household.change_policy("cache_aware")
        assert household.url != first
        await household.stop()
    told = [line.split() for line in journal.read_text().splitlines() if "--worker-urls" in line]
    assert [flags[flags.index("--policy") + 1] for flags in told] == ["round_robin", "cache_aware"]
    assert [flags[flags.index("--worker-urls") + 1] for flags in told] == ["grpc://127.0.0.1:2"] * 2
    assert noted(journal, "stops") == ["gateway", "gateway", "worker", "worker"]


def test_a_policy_that_keeps_aims_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match=r"^kv_cost_slo keeps --ttft-slo .* `radixgate gateway`$"):
        run_up(UpConfig(policy="kv_cost_slo"))
