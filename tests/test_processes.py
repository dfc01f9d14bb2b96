"""Children with real, tiny Python programs: ready lines, full pipes, signals, and death."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from radixgate import die_with_parent
from radixgate.errors import ProcessFailed
from radixgate.processes import LINE_BYTES, TAIL_LINES, Child, how_it_ended

READY = "print('ready port=7', flush=True)\n"
WAIT_FOR_EVER = "import signal\nwhile True: signal.pause()\n"
PATIENCE_S = 20.0  # a bound for a busy machine, not a time that a test takes


def python(program: str) -> Sequence[str]:
    return (sys.executable, "-I", "-S", "-c", program)


async def start(program: str, ready: str | None = r"ready port=(\d+)") -> Child:
    return await Child.start("kid", python(program), ready=ready)


async def until_gone(pid: int) -> None:
    """Until a process that is not our child has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not runs(pid):
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"process {pid} still runs")


def runs(pid: int) -> bool:
    """False for a zombie too: nobody may be there to reap it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def test_the_ready_line_is_matched_among_others() -> None:
    child = await start("print('loading')\n" + READY + WAIT_FOR_EVER)
    assert (await child.wait_ready(PATIENCE_S)).group(1) == "7"
    assert child.tail() == ["loading", "ready port=7"]
    assert child.exit_code is None
    assert await child.stop(PATIENCE_S) == -signal.SIGTERM
    assert child.exit_code == -signal.SIGTERM


async def test_a_ready_line_counts_even_if_asked_for_after_the_end() -> None:
    child = await start(READY)
    assert await child.wait() == 0
    assert (await child.wait_ready(0)).group(1) == "7"


async def test_a_child_that_ends_early_is_reported_with_its_last_lines() -> None:
    child = await start("import sys\nprint('no such model')\nsys.exit(3)")
    with pytest.raises(ProcessFailed) as caught:
        await child.wait_ready(PATIENCE_S)
    assert caught.value.message == "kid ended with code 3 before it was ready\n  no such model"


async def test_stderr_counts_as_output() -> None:
    child = await start("import sys\nprint('oh no', file=sys.stderr)\nsys.exit(1)")
    await child.wait()
    assert child.tail() == ["oh no"]


async def test_a_child_that_is_never_ready_is_reported_and_still_runs() -> None:
    child = await start(WAIT_FOR_EVER)
    with pytest.raises(ProcessFailed, match=r"^kid was not ready after 0\.01 s$"):
        await child.wait_ready(0.01)
    assert child.exit_code is None
    await child.stop(PATIENCE_S)


async def test_a_program_that_does_not_exist_is_named() -> None:
    child = await Child.start("kid", ["/no/such/program"], ready="x")
    with pytest.raises(ProcessFailed, match="/no/such/program: No such file or directory"):
        await child.wait_ready(PATIENCE_S)


async def test_sigkill_follows_where_sigterm_is_ignored() -> None:
    child = await start(
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY + WAIT_FOR_EVER
    )
    await child.wait_ready(PATIENCE_S)
    assert await child.stop(0.01) == -signal.SIGKILL


async def test_sigterm_lets_a_child_end_in_its_own_way() -> None:
    program = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    child = await start(program + READY + WAIT_FOR_EVER)
    await child.wait_ready(PATIENCE_S)
    assert await child.stop(PATIENCE_S) == 0
    assert await child.stop(PATIENCE_S) == 0


async def test_a_full_pipe_never_blocks_and_only_the_tail_is_kept() -> None:
    lines: list[str] = []
    program = "for i in range(20000): print(i, 'x' * 50)"
    child = await Child.start("kid", python(program), on_line=lines.append)
    assert await child.wait() == 0
    assert len(lines) == 20_000
    assert child.tail() == lines[-TAIL_LINES:]


async def test_a_long_line_is_cut_and_an_unfinished_one_is_a_line() -> None:
    child = await start(f"print('a' * {LINE_BYTES * 30})\nprint('b\\xff\\r')\nprint('c', end='')")
    await child.wait()
    long, short, unfinished = child.tail()
    assert long == "a" * LINE_BYTES
    assert short == "b\N{LATIN SMALL LETTER Y WITH DIAERESIS}"
    assert unfinished == "c"


async def test_children_have_sessions_of_their_own() -> None:
    child = await start(READY + WAIT_FOR_EVER)
    await child.wait_ready(PATIENCE_S)
    assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid
    await child.stop(PATIENCE_S)


async def test_a_cancelled_stop_kills() -> None:
    child = await start(
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY + WAIT_FOR_EVER
    )
    await child.wait_ready(PATIENCE_S)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await child.stop(PATIENCE_S)
    assert await child.wait() == -signal.SIGKILL


async def test_an_orphan_that_keeps_the_pipe_open_does_not_hold_up_stop() -> None:
    orphan = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3)'], "
        "start_new_session=True)\n"
    )
    child = await start(orphan + READY + WAIT_FOR_EVER)
    await child.wait_ready(PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        assert await child.stop(PATIENCE_S) == -signal.SIGTERM


async def test_a_child_dies_when_its_parent_is_killed() -> None:
    parent_program = f"""
import asyncio, sys
from radixgate.processes import Child
async def main():
    child = await Child.start("grandkid", {python(READY + WAIT_FOR_EVER)!r}, ready="ready")
    await child.wait_ready({PATIENCE_S})
    print("grandkid pid=%d" % child.pid, flush=True)
    await child.wait()
asyncio.run(main())
"""
    parent = await Child.start("parent", [sys.executable, "-c", parent_program], ready=r"pid=(\d+)")
    grandchild = int((await parent.wait_ready(PATIENCE_S)).group(1))
    os.kill(parent.pid, signal.SIGKILL)
    assert await parent.wait() == -signal.SIGKILL
    await until_gone(grandchild)


def test_a_child_of_a_parent_that_is_gone_already_does_not_start() -> None:
    with pytest.raises(SystemExit) as stop:
        die_with_parent.main(["0", "/bin/true"])
    assert stop.value.code == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param(0, "ended with code 0", id="normal"),
        pytest.param(-9, "was ended by SIGKILL", id="killed"),
        pytest.param(-35, "was ended by signal 35", id="signal without a name"),
    ],
)
def test_exit_codes_in_words(code: int, words: str) -> None:
    assert how_it_ended(code) == words
