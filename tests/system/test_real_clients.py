"""Clients that people have, nothing of ours: OpenAI's SDKs for Python and Node, httpx, and curl."""

import asyncio
import hashlib
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio

from live_fleet import LiveFleet, empty_fleet
from until import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="module")]

KEY = "the-client-key"
NODE = Path(__file__).parent / "node_client"
RATED_TOKENS = 200
LONG = 6_000  # tokens: more than are made before a client gives up
ASKED: dict[str, Any] = {
    "model": "toy",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 8,
    "temperature": 0,
}
FULL = {"extra_body": {"ignore_eos": True}}


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="fleet")
async def one_worker_behind_a_key() -> AsyncIterator[LiveFleet]:
    async with empty_fleet() as fleet:
        await fleet.add_worker("--max-total-tokens", "16384")
        fleet.session.headers["Authorization"] = f"Bearer {KEY}"
        await fleet.start_gateway("--api-key", KEY)
        await fleet.ready_workers(1)
        yield fleet


def url(fleet: LiveFleet) -> str:
    return f"http://{fleet.gateway_at}/v1"


async def tokens_made(fleet: LiveFleet) -> float:
    return await fleet.tokens_made(fleet.workers[0])


async def rated_s(fleet: LiveFleet) -> float:
    """How long a whole answer takes on this machine now."""
    began = time.perf_counter()
    body = {**ASKED, "max_tokens": RATED_TOKENS, "ignore_eos": True}
    status, _, _ = await fleet.post("/v1/chat/completions", body)
    assert status == 200
    return time.perf_counter() - began


async def stops_computing(fleet: LiveFleet) -> float:
    """Now that nobody waits the worker runs nothing any more, and the gateway counts nothing,
    within two seconds, and what two answers take on this machine. Tokens made by then."""
    left = time.perf_counter()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, _, info = await fleet.get("/get_server_info", at=fleet.workers[0].http)
            (row,) = await fleet.worker_rows()
            if info["running"] == info["waiting"] == row["in_flight"] == 0:
                break
            await asyncio.sleep(0.02)
    took = time.perf_counter() - left
    made = await tokens_made(fleet)
    assert took < 2.0 + 2 * await rated_s(fleet)
    return made


async def gives_up(fleet: LiveFleet, ask: Callable[[float], Awaitable[None]]) -> None:
    """`ask` for a LONG answer with so many seconds of patience: what was begun is not computed to
    its end. Where the machine is so slow that nothing was begun by then, it has twice as many."""
    patience_s = 0.3
    while True:
        before = await tokens_made(fleet)
        await ask(patience_s)
        made = await stops_computing(fleet) - before
        assert made < LONG
        if made:
            return
        patience_s *= 2
        assert patience_s < PATIENCE_S


async def begins(fleet: LiveFleet, before: float) -> None:
    """More has been made than `before`: what was asked runs."""
    async with asyncio.timeout(PATIENCE_S):
        while await tokens_made(fleet) <= before:
            await asyncio.sleep(0.01)


async def test_the_python_sdk(fleet: LiveFleet) -> None:
    await asyncio.to_thread(_python_sdk, url(fleet))
    await stops_computing(fleet)
    await gives_up(fleet, lambda patience_s: asyncio.to_thread(_late, url(fleet), patience_s))


def _late(base_url: str, patience_s: float) -> None:
    timeout = openai.Timeout(None, read=patience_s)
    with openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0, timeout=timeout) as client:
        create: Any = client.chat.completions.create
        with pytest.raises(openai.APITimeoutError):
            create(**{**ASKED, "max_tokens": LONG}, **FULL)


def _python_sdk(base_url: str) -> None:
    with openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0) as client:
        create: Any = client.chat.completions.create  # of many overloads, one for each literal
        whole = create(**ASKED, **FULL)
        assert whole.choices[0].finish_reason == "length"
        assert whole.usage.completion_tokens == 8
        pieces = create(**ASKED, **FULL, stream=True, stream_options={"include_usage": True})
        events = list(pieces)
        said = "".join(event.choices[0].delta.content or "" for event in events if event.choices)
        assert said == whole.choices[0].message.content
        assert events[-1].usage.completion_tokens == 8
        several = create(**{**ASKED, "temperature": 1, "seed": 3}, n=2, **FULL)
        assert [choice.index for choice in several.choices] == [0, 1]
        complete: Any = client.completions.create
        text = complete(model="toy", prompt="hello", max_tokens=4, **FULL)
        assert text.usage.completion_tokens == 4
        assert [model.id for model in client.models.list()] == ["toy"]
        with pytest.raises(openai.NotFoundError) as unknown:
            create(**{**ASKED, "model": "nobody"})
        assert unknown.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError) as wrong:
            create(**{**ASKED, "temperature": -1})
        assert wrong.value.param == "temperature"
        stranger: Any = client.with_options(api_key="other").chat.completions.create
        with pytest.raises(openai.AuthenticationError):
            stranger(**ASKED)
        stream = create(**{**ASKED, "max_tokens": LONG}, **FULL, stream=True)
        next(iter(stream))
        stream.close()


async def test_the_asynchronous_python_sdk(fleet: LiveFleet) -> None:
    async with openai.AsyncOpenAI(base_url=url(fleet), api_key=KEY, max_retries=0) as client:
        create: Any = client.chat.completions.create  # of many overloads, one for each literal
        whole, again = await asyncio.gather(create(**ASKED, **FULL), create(**ASKED, **FULL))
        assert whole.choices[0].message.content == again.choices[0].message.content
        said = ""
        async for event in await create(**ASKED, **FULL, stream=True):
            said += event.choices[0].delta.content or ""
        assert said == whole.choices[0].message.content
        with pytest.raises(openai.NotFoundError):
            await create(**{**ASKED, "model": "nobody"})

        async def late(patience_s: float) -> None:
            timeout = openai.Timeout(None, read=patience_s)
            with pytest.raises(openai.APITimeoutError):
                await create(**{**ASKED, "max_tokens": LONG}, **FULL, timeout=timeout)

        await gives_up(fleet, late)
        before = await tokens_made(fleet)
        asked = asyncio.ensure_future(create(**{**ASKED, "max_tokens": LONG}, **FULL))
        await begins(fleet, before)
        assert not asked.done()
        asked.cancel()
        await asyncio.wait([asked])
        await stops_computing(fleet)
        assert await tokens_made(fleet) - before < LONG


async def test_httpx(fleet: LiveFleet) -> None:
    httpx = pytest.importorskip("httpx2", reason="the SDK brings it")
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=url(fleet), headers=headers) as client:
        whole = await client.post("/chat/completions", json=ASKED)
        assert whole.status_code == 200
        lines = []
        body = {**ASKED, "stream": True}
        async with client.stream("POST", "/chat/completions", json=body) as answer:
            lines = [line async for line in answer.aiter_lines() if line]
        assert lines[-1] == "data: [DONE]"
        said = [json.loads(line[6:])["choices"][0]["delta"] for line in lines[:-1]]
        text = "".join(delta.get("content") or "" for delta in said)
        assert text == whole.json()["choices"][0]["message"]["content"]
        long = {**ASKED, "max_tokens": LONG, "ignore_eos": True}

        async def late(patience_s: float) -> None:
            timeout = httpx.Timeout(None, read=patience_s)
            with pytest.raises(httpx.ReadTimeout):
                await client.post("/chat/completions", json=long, timeout=timeout)

        await gives_up(fleet, late)


async def test_curl(fleet: LiveFleet) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl")

    async def ask(body: dict[str, Any], *flags: str) -> tuple[int, bytes]:
        words = [curl, "-sSN", *flags, "-H", f"Authorization: Bearer {KEY}", "-d", json.dumps(body)]
        child = await asyncio.create_subprocess_exec(
            *words,
            f"{url(fleet)}/chat/completions",
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await child.communicate()
        assert child.returncode is not None
        return child.returncode, told

    code, whole = await ask(ASKED)
    assert (code, json.loads(whole)["object"]) == (0, "chat.completion")
    code, streamed = await ask({**ASKED, "stream": True}, "-H", "Expect: 100-continue")
    assert code == 0
    assert streamed.endswith(b"data: [DONE]\n\n")
    code, refused = await ask({**ASKED, "model": "nobody"}, "--fail-with-body")
    assert (code, json.loads(refused)["error"]["code"]) == (22, "model_not_found")
    long = {**ASKED, "max_tokens": LONG, "ignore_eos": True, "stream": True}
    patience_s, part = 2, b""
    while not part:  # on a slow machine nothing may have come by then
        code, part = await ask(long, "--max-time", str(patience_s))
        assert code == 28
        patience_s *= 2
    assert part.startswith(b"data: {")
    await stops_computing(fleet)


async def test_the_node_sdk(fleet: LiveFleet) -> None:
    node, folder = shutil.which("node"), await _node_folder()
    assert node is not None
    code, told = await _run(node, "client.mjs", url(fleet), KEY, cwd=folder)
    assert code == 0, told
    seen = json.loads(told.splitlines()[-1])
    assert (seen["finish"], seen["tokens"], seen["choices"]) == ("length", 8, [0, 1])
    assert seen["streamed"] == seen["text"] != ""
    assert seen["unknown"] == "NotFoundError 404"
    assert seen["wrong"] == "BadRequestError 400"
    assert seen["stranger"] == "AuthenticationError 401"
    await stops_computing(fleet)

    async def late(patience_s: float) -> None:
        words = "client.mjs", url(fleet), KEY, str(round(1_000 * patience_s))
        code, told = await _run(node, *words, cwd=folder)
        assert (code, told.strip()) == (0, "APIConnectionTimeoutError")

    await gives_up(fleet, late)


async def _node_folder() -> Path:
    """The script and the SDK of the pinned version; made once, in the user's cache."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("there is no node with npm")
    lock = (NODE / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "radixgate" / f"node-client-{hashlib.sha256(lock).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    for file in NODE.iterdir():
        shutil.copy(file, folder)
    if not (folder / "node_modules" / "openai").is_dir():
        code, told = await _run(npm, "ci", "--no-audit", "--no-fund", cwd=folder)
        if code:
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            pytest.skip(f"npm could not install the SDK: {told[-200:]}")
    return folder


async def _run(*words: str, cwd: Path) -> tuple[int, str]:
    child = await asyncio.create_subprocess_exec(
        *words, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(300):
        told, _ = await child.communicate()
    assert child.returncode is not None
    return child.returncode, told.decode("utf-8", "replace")
