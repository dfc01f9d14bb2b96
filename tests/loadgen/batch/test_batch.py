"""`radixgate batch` from a file to a file: every line once, whatever happens on the way."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from radixgate.errors import ConfigError, GatewayError
from radixgate.loadgen.batch.config import BatchConfig
from radixgate.loadgen.batch.run import run_batch
from timed_server import Asked, Script, TimedServer

JSON = "application/json"


def line(custom_id: str, **body: object) -> str:
    told = {"model": "m", "messages": [{"role": "user", "content": custom_id}], **body}
    return json.dumps(
        {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": told}
    )


def answer(asked: Asked, delay_s: float = 0.0) -> Script:
    """Pretty-printed, as some servers do: it still has to become one line."""
    if asked.path == "/workers":
        workers = {"workers": [{"id": "a", "state": "ready"}, {"id": "b", "state": "down"}]}
        return Script(((0.0, json.dumps(workers).encode()),), content_type=JSON)
    said = {
        "echo": asked.body["messages"][0]["content"],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    return Script(((delay_s, json.dumps(said, indent=2).encode()),), content_type=JSON)


def failure(status: int) -> Script:
    return Script(((0.0, b'{"error": "no"}'),), status=status, content_type=JSON)


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def config(path: Path, url: str, **further: Any) -> BatchConfig:  # noqa: ANN401
    return BatchConfig(input=str(path), base_url=url, disable_tqdm=True, **further)


def answers(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


async def batch(settings: BatchConfig) -> int:
    return await asyncio.to_thread(run_batch, settings)


async def test_each_line_gets_its_answer_in_openais_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, *(line(f"q{n}", max_tokens=n) for n in range(1, 31)))
    async with TimedServer(answer) as server:
        assert await batch(config(path, server.url)) == 0
    found = answers(tmp_path / "in.out.jsonl")
    assert Counter(row["custom_id"] for row in found) == Counter(f"q{n}" for n in range(1, 31))
    for row in found:
        assert row["error"] is None
        assert row["response"]["status_code"] == 200
        assert row["response"]["body"]["echo"] == row["custom_id"]
    sent = [one.body["max_tokens"] for one in server.asked if one.path != "/workers"]
    assert sorted(sent) == list(range(1, 31))
    shown = capsys.readouterr().out
    assert "30 lines in" in shown
    assert "90 prompt and 60 completion tokens" in shown


async def test_started_again_it_does_only_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, line("a"), line("b"), line("c"))
    done = b'{"custom_id": "b", "response": null, "error": null}\n'
    (tmp_path / "in.out.jsonl").write_bytes(done + b'{"custom_id": "c", "respo')
    async with TimedServer(answer) as server:
        assert await batch(config(path, server.url, max_concurrency=1)) == 0
    assert [one.body["messages"][0]["content"] for one in server.asked] == ["a", "c"]
    assert [row["custom_id"] for row in answers(tmp_path / "in.out.jsonl")] == ["b", "a", "c"]
    shown = capsys.readouterr().out
    assert "repaired: 25 bytes" in shown
    assert "going on: 1 of 3 lines" in shown


@pytest.mark.slow
async def test_refusals_that_pass_are_tried_again_and_press_less(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()

    def script(asked: Asked) -> Script:
        name = asked.body["messages"][0]["content"]
        seen[name] += 1
        return failure(503) if seen[name] == 1 else answer(asked)

    path = written(tmp_path, line("a"))
    async with TimedServer(script) as server:
        assert await batch(config(path, server.url, max_concurrency=4)) == 0
    assert seen == {"a": 2}
    assert answers(tmp_path / "in.out.jsonl")[0]["error"] is None


async def test_an_error_that_stays_is_the_lines_answer(tmp_path: Path) -> None:
    def script(asked: Asked) -> Script:
        name = asked.body["messages"][0]["content"]
        return failure(400) if name == "bad" else answer(asked)

    path = written(tmp_path, line("bad"), line("good"))
    async with TimedServer(script) as server:
        assert await batch(config(path, server.url, max_concurrency=1)) == 1
    bad, good = answers(tmp_path / "in.out.jsonl")
    assert bad["response"] == {
        "status_code": 400,
        "request_id": bad["id"],
        "body": {"error": "no"},
    }
    assert bad["error"]["code"] == "HTTP 400"
    assert good["error"] is None
    assert len(server.asked) == 2


@pytest.mark.slow
async def test_a_server_that_is_gone_costs_no_line(tmp_path: Path) -> None:
    path = written(tmp_path, line("a"))
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with pytest.raises(GatewayError, match="start the same command again"):
            await batch(config(path, url, max_concurrency=1, give_up_s=0.1))
    assert (tmp_path / "in.out.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param([line("a"), line("a")], r":2: custom_id 'a' stands a second", id="twice"),
        pytest.param([line("a", stream=True)], r":1: stream must not be true", id="stream"),
        pytest.param(["{"], r":1: ", id="no-json"),
        pytest.param(['{"custom_id": "a"}'], r":1: .*missing", id="no-body"),
        pytest.param([line("a").replace("chat/completions", "embeddings")], "embeddings", id="url"),
        pytest.param([""], "holds no requests", id="empty"),
    ],
)
def test_a_wrong_input_is_named_before_anything_is_sent(
    tmp_path: Path, lines: list[str], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        run_batch(config(written(tmp_path, *lines), "http://127.0.0.1:9"))
    assert not (tmp_path / "in.out.jsonl").exists()


def test_answers_to_other_questions_are_not_mixed_in(tmp_path: Path) -> None:
    (tmp_path / "in.out.jsonl").write_text('{"custom_id": "z"}\n')
    with pytest.raises(ConfigError, match="'z', which is not in"):
        run_batch(config(written(tmp_path, line("a")), "http://127.0.0.1:9"))


@pytest.mark.slow
async def test_killed_five_times_the_output_holds_each_line_once(tmp_path: Path) -> None:
    """2,000 lines; each SIGKILL comes at a count of lines that the one before did not reach."""
    names = [f"line {n}" for n in range(2000)]
    path = written(tmp_path, *map(line, names))
    output = tmp_path / "in.out.jsonl"
    async with TimedServer(lambda asked: answer(asked, 0.004)) as server:
        command = (sys.executable, "-m", "radixgate.cli", "batch", str(path))
        flags = ("--base-url", server.url, "--max-concurrency", "16", "--disable-tqdm")
        for kill_at in (150, 400, 800, 1200, 1700, None):
            process = await asyncio.create_subprocess_exec(
                *command, *flags, stdout=asyncio.subprocess.DEVNULL
            )
            while kill_at is not None and lines_in(output) < kill_at:
                assert process.returncode is None
                await asyncio.sleep(0.005)
            if kill_at is not None:
                os.kill(process.pid, signal.SIGKILL)
            code = await process.wait()
            assert code == (0 if kill_at is None else -signal.SIGKILL)
    found = answers(output)
    assert Counter(row["custom_id"] for row in found) == Counter(names)
    assert all(row["response"]["body"]["echo"] == row["custom_id"] for row in found)
    # What was in flight at a kill is asked again, and nothing else is.
    assert 2000 <= len(server.asked) <= 2000 + 5 * 16


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
