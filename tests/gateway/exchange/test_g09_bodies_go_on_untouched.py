"""G09: what the client wrote is what the worker reads, known fields and unknown ones alike."""

import json

import pytest

from raw_client import ask, request
from scripted_worker import ScriptedWorker
from small_gateway import CHAT, small_gateway

ODD = '"foo":{"big":12345678901234567890,"f":1.0,"s":"\\u2028\\u00e9","n":null}'
BODIES = [
    pytest.param(
        CHAT,
        '{"model":"toy","messages":[{"role":"user","content":"hi","x_part":[1]}],'
        '"return_token_ids":true,"chat_template_kwargs":{"enable_thinking":false},' + ODD + "}",
        id="chat",
    ),
    pytest.param(
        "/v1/completions",
        '{"model":"toy","prompt":["hi"],"stop":null,"custom_params":{"a":[0.1]},' + ODD + "}",
        id="completion",
    ),
    pytest.param(
        "/generate",
        '{"text":"hi","rid":"r-1","lora_path":"x","return_logprob":true,'
        '"sampling_params":{"custom_params":{"a":1e-7},"max_new_tokens":1},' + ODD + "}",
        id="generate",
    ),
]


@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_g09_the_worker_gets_the_bytes_that_were_sent(path: str, body: str) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        assert (await gateway.post(path, body.encode())).status == 200
        got = worker.requests[0]
        assert got.body == body.encode()
        assert got.json == json.loads(body)
        assert got.json["foo"]["big"] == 12345678901234567890


async def test_a_chunked_body_arrives_whole_with_a_length() -> None:
    body = b'{"model":"toy","messages":[{"role":"user","content":"hi"}]}'
    head = f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)

    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        assert (await ask(gateway.port, head + chunks)).status == 200
        assert worker.requests[0].body == body
        assert worker.requests[0].header("content-length") == str(len(body))
        assert worker.requests[0].header("transfer-encoding") is None


async def test_a_large_body_is_not_changed_either() -> None:
    text = json.dumps({"model": "toy", "prompt": "é" * 500_000}, ensure_ascii=False)
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        reply = await gateway.post("/v1/completions", text.encode())
        assert reply.status == 200
        assert worker.requests[0].body == text.encode()


async def test_the_target_s_query_goes_along() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:

        async def ask_with(query: str) -> str:

            body = {"model": "toy", "prompt": "hi"}
            await ask(gateway.port, request(f"/v1/completions{query}", body))
            return worker.requests[-1].target

        assert await ask_with("?trace=1") == "/v1/completions?trace=1"
        assert await ask_with("") == "/v1/completions"
