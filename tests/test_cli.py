"""What the command line answers to words it does not know."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from radixgate import log
from radixgate.cli import EXIT_NO_READER, main
from radixgate.commands import ENTRIES
from radixgate.configs.load import load
from radixgate.errors import ConfigError


@pytest.fixture(autouse=True)
def no_log_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the process is pytest's; other tests read it."""
    monkeypatch.setattr(log, "set_up", lambda: None)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param(
            ["worker", "--page-sise", "4"],
            "radixgate worker: --page-sise: radixgate worker has no such flag; nearest is"
            " --page-size",
            id="unknown flag",
        ),
        pytest.param(
            ["worker", "--nnodes", "4"],
            "radixgate worker: --nnodes 4: one worker is one node",
            id="refused flag",
        ),
        pytest.param(
            ["gateway", "--port", "many"],
            "radixgate gateway: --port: expected an integer, not 'many'",
            id="wrong value",
        ),
        pytest.param(
            ["serve"],
            f"radixgate: no command 'serve'; there are {', '.join(ENTRIES)}",
            id="unknown command",
        ),
    ],
)
def test_bad_settings_give_one_line_and_exit_code_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert capsys.readouterr().err == message + "\n"


def test_ctrl_c_ends_a_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fails(monkeypatch, KeyboardInterrupt())
    assert main(["report", str(tmp_path)]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words", [["up", "--policy", "cach_aware"], ["compare", "--policies", "kv_cost", "cach_aware"]]
)
def test_a_policy_that_does_not_exist_is_said_before_workers_start(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "did you mean 'cache_aware'?" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["--help"], []], ids=["asked for", "no command"])
def test_the_commands_are_listed(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == (0 if argv else 2)
    text = capsys.readouterr().out
    for name, entry in ENTRIES.items():
        assert name in text
        assert entry.command.about in text


@pytest.mark.parametrize(
    "setting", ["up.workers=0", "up.threads=0"], ids=["no workers", "no threads"]
)
def test_up_refuses_a_number_below_one(setting: str) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        load(ENTRIES["up"].command, ["--set", setting], environ={})


def fails(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def failing(*_: object) -> int:
        raise error

    monkeypatch.setattr("radixgate.loadgen.report_command.run_report", failing)


def test_an_optional_dependency_that_is_not_there_is_named_with_what_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fails(monkeypatch, ModuleNotFoundError("No module named 'scipy'", name="scipy"))
    assert main(["report", str(tmp_path)]) == 1
    told = "radixgate report: scipy is not installed; pip install 'radixgate[bench]'\n"
    assert capsys.readouterr().err == told


def test_a_module_of_ours_that_is_not_there_is_no_missing_dependency(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fails(monkeypatch, ModuleNotFoundError("No module named 'radixgate.x'", name="radixgate.x"))
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        main(["report", str(tmp_path)])


def test_what_an_install_brings_for_each_command() -> None:
    extras = {name: entry.extras for name, entry in ENTRIES.items()}
    assert extras == {
        "up": "worker",
        "gateway": "",
        "worker": "worker",
        "bench": "bench",
        "batch": "bench",
        "compare": "bench",
        "report": "bench",
        "experiment": "bench",
        "simulate": "bench",
        "replay": "bench",
        "demo": "worker,bench",
    }


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_who_reads_no_more_ends_a_command_without_a_traceback(
    tmp_path: Path, unbuffered: str
) -> None:
    trace, out = Path(__file__).parent / "data/mooncake_conversation_200.jsonl", tmp_path / "o.json"
    words = f"simulate --trace {trace} --max-requests 9 --capacity 5 --policies random"
    reads, writes = os.pipe()
    os.close(reads)
    for command in ([*words.split(), "--json", str(out)], ["help"], ["simulate", "--help"]):
        program = [sys.executable, "-m", "radixgate.cli", *command]
        ended = subprocess.run(
            program,
            stdout=writes,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (EXIT_NO_READER, b"")
    os.close(writes)
