"""What is wrong in a request is said before any worker is asked, by gateway and worker alike."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from live_fleet import LiveFleet, live_fleet

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

USER = {"role": "user", "content": "hi"}
CHAT = "/v1/chat/completions"


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="fleet")
async def small_context() -> AsyncIterator[LiveFleet]:
    async with live_fleet(1, worker_flags=("--context-length", "64", "--page-size", "4")) as fleet:
        yield fleet


def at(fleet: LiveFleet, through: str) -> str:
    return fleet.gateway_at if through == "gateway" else fleet.workers[0].http


@pytest.mark.parametrize("through", ["gateway", "worker"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"temperature": "hot"}, "temperature"),
    ],
)
async def test_g06_bad_values_are_400_and_name_the_field(
    fleet: LiveFleet, through: str, stream: bool, fields: dict[str, object], field: str
) -> None:
    body = {"model": "toy", "messages": [USER], "stream": stream, **fields}
    asked = await requests_at_the_worker(fleet)
    status, headers, answer = await fleet.post(CHAT, body, at(fleet, through))
    assert await requests_at_the_worker(fleet) == asked
    assert status == 400, answer
    assert headers["content-type"].startswith("application/json")
    assert answer["error"]["param"] == field
    assert {"message", "type", "code"} <= answer["error"].keys()


@pytest.mark.parametrize("through", ["gateway", "worker"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("prompt_tokens", "max_tokens", "status", "completion"),
    [
        pytest.param(65, 1, 400, None, id="over-the-context"),
        pytest.param(64, 1, 400, None, id="fills-the-context"),
        pytest.param(63, 1, 200, 1, id="one-token-left"),
        pytest.param(60, 100, 200, 4, id="output-is-clamped"),
    ],
)
async def test_g06_one_rule_at_the_context_limit(
    fleet: LiveFleet,
    through: str,
    stream: bool,
    prompt_tokens: int,
    max_tokens: int,
    status: int,
    completion: int | None,
) -> None:
    body = {
        "model": "toy",
        "prompt": list(range(1, prompt_tokens + 1)),
        "max_tokens": max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": stream,
        "stream_options": {"include_usage": True} if stream else None,
    }
    where = at(fleet, through)
    if status == 400:
        answered, headers, answer = await fleet.post("/v1/completions", body, where)
        assert answered == 400, answer
        assert headers["content-type"].startswith("application/json")
        assert "64" in answer["error"]["message"]
    elif stream:
        streamed = await fleet.stream("/v1/completions", body, where)
        assert streamed.status == 200
        assert streamed.events[-1]["usage"]["completion_tokens"] == completion
    else:
        answered, _, answer = await fleet.post("/v1/completions", body, where)
        assert answered == 200, answer
        assert answer["usage"]["completion_tokens"] == completion
        assert answer["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("through", ["gateway", "worker"])
async def test_g06_broken_bodies(fleet: LiveFleet, through: str) -> None:
    where = at(fleet, through)
    for body in (b"{", b"", b"[1]", b"\xff\xfe"):
        status, _, answer = await fleet.post(CHAT, body, where)
        assert status == 400, answer
        assert answer["error"]["param"] == "body"
    status, _, answer = await fleet.post(CHAT, {"model": "nope", "messages": [USER]}, where)
    assert status == 404
    assert "toy" in answer["error"]["message"]
    status, _, answer = await fleet.post(CHAT, b" " * 70_000_000, where)
    assert status == 413
    assert answer["error"]["type"] == "invalid_request_error"
    status, _, _ = await fleet.get("/health", where)
    assert status == 200
    status, _, _ = await fleet.post(CHAT, {"messages": [USER], "max_tokens": 1}, where)
    assert status == 200


async def test_no_traceback_was_logged(fleet: LiveFleet) -> None:
    """Runs last: looks back at what the tests above have left."""
    for child in (fleet.gateway, fleet.workers[0].child):
        assert child is not None
        assert not any("Traceback" in line for line in child.tail()), child.tail()


async def requests_at_the_worker(fleet: LiveFleet) -> float:
    """Requests that its engine has taken up or refused, ever."""
    _, _, metrics = await fleet.get("/metrics", fleet.workers[0].http)
    names = ("sglang:num_requests_total", "radixgate_worker_refused_requests_total")
    counts = [float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(names)]
    assert len(counts) == 2
    return sum(counts)
