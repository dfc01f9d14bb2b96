"""Embeddings, rerankings and responses: passed to workers behind http://, refused for our own."""

import json

import pytest

from attached_gateway import attached_gateway, join_attached
from attached_worker import AttachedWorker
from radixgate.gateway.asking.foreign_request import GENERATION_PATHS, HOT_PATHS
from radixgate.gateway.asking.large_bodies import LARGE_BODY_BYTES
from scripted_worker import Raw, ScriptedWorker, Step, chunk, json_answer, sse_head
from small_gateway import small_gateway

END = Raw(b"0\r\n\r\n")
COMPLETED = (
    b'event: response.completed\ndata: {"type":"response.completed","response":'
    b'{"usage":{"input_tokens":5,"output_tokens":2}}}\n\n'
)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/v1/embeddings", {"model": "toy", "input": ["a", "b"]}, id="embeddings"),
        pytest.param("/v1/classify", {"model": "toy", "input": ["a"]}, id="classify"),
        pytest.param("/v1/rerank", {"query": "q", "documents": ["a"]}, id="rerank"),
        pytest.param("/rerank", {"query": "q", "documents": ["a"]}, id="rerank-of-old"),
        pytest.param("/v1/responses", {"input": "hi", "store": False}, id="responses"),
    ],
)
async def test_bytes_go_on_untouched_and_come_back_so(path: str, body: dict[str, object]) -> None:
    sent, told = json.dumps(body, indent=3).encode(), {"data": [1.5, 0.1], "usage": None}
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda _: json_answer(told)
        answer = await gateway.post(path, sent, "X-Trace: t1")
        assert (answer.status, answer.json) == (200, told)
        (got,) = worker.requests
        assert (got.path, got.body, got.header("x-trace")) == (path, sent, "t1")
        ok = await gateway.counter("radixgate_requests_total", outcome="ok")
    assert ok == 1


async def test_a_worker_without_the_endpoint_says_so_itself() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda _: json_answer({"detail": "Not Found"}, 404)
        answer = await gateway.post("/v1/embeddings", {"input": "a"})
        assert (answer.status, answer.json) == (404, {"detail": "Not Found"})
        assert len(worker.requests) == 1


async def test_a_streamed_response_is_whole_with_its_last_event() -> None:
    def cut(_: object) -> list[Step]:
        return [*sse_head(), chunk(b'data: {"type":"response.output_text.delta"}\n\n'), END]

    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda _: [*sse_head(), chunk(COMPLETED), END]
        whole = await gateway.post("/v1/responses", {"input": "a", "stream": True})
        assert whole.body == COMPLETED
        assert not whole.cut
        tokens = await gateway.counter("radixgate_completion_tokens_total")
        worker.script = cut
        assert b'"error"' in (await gateway.post("/v1/responses", {"input": "a"})).body
    assert tokens == 2


async def test_what_cannot_be_read_reaches_no_worker() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        answer = await gateway.post("/v1/embeddings", {"input": None})
        assert answer.status == 400
        assert answer.json["error"]["param"] == "input"
        assert worker.requests == []


def test_the_endpoints_of_both_kinds() -> None:
    passed_on = {
        b"/v1/embeddings",
        b"/v1/classify",
        b"/v1/rerank",
        b"/rerank",
        b"/v1/responses",
    }
    assert passed_on == HOT_PATHS - GENERATION_PATHS


@pytest.mark.parametrize("size", [1, LARGE_BODY_BYTES])
async def test_beside_workers_of_ours_it_goes_to_those_that_have_the_endpoint(size: int) -> None:
    body = {"model": "toy", "input": "a" * size}
    async with (
        ScriptedWorker() as worker,
        AttachedWorker() as ours,
        small_gateway([worker]) as gateway,
    ):
        worker.script = lambda _: json_answer({"data": [1.5]})
        join_attached(gateway.gateway, ours.stream, "ours")
        for _ in range(3):
            answer = await gateway.post("/v1/embeddings", body)
            assert (answer.status, answer.json) == (200, {"data": [1.5]})
        assert len(worker.requests) == 3
        wrong = await gateway.post("/v1/embeddings", {"model": "toy", "input": None})
        assert (wrong.status, wrong.json["error"]["param"]) == (400, "input")
        gateway.gateway.fleet.remove("ours")


async def test_where_only_ours_serve_a_model_it_is_refused_by_that() -> None:
    async with attached_gateway() as (gateway, _):
        for given in ("a", None):
            answer = await gateway.post("/v1/embeddings", {"model": "toy", "input": given})
            assert answer.status == 400
            assert answer.json["error"]["code"] == "unsupported_endpoint"
