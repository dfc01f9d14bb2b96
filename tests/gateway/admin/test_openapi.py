"""The interface's document says what there is, and its schemas what the parsers take."""

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest

from radixgate.errors import RequestError
from radixgate.gateway.admin import openapi
from radixgate.gateway.asking.foreign_request import HOT_PATHS, read_foreign
from radixgate.proto import request_schemas
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from small_gateway import small_gateway

Body = dict[str, Any]
HI = [{"role": "user", "content": "hi"}]
PARSERS = {
    "chat": (request_schemas.CHAT, parse_chat),
    "completion": (request_schemas.COMPLETION, parse_completion),
    "generate": (request_schemas.GENERATE, parse_generate),
}
LEAST: Mapping[str, Body] = {
    "chat": {"messages": HI},
    "completion": {"prompt": "a"},
    "generate": {"text": "a"},
}
SAMPLING: list[tuple[Body, bool]] = [
    ({"temperature": 0}, True),
    ({"temperature": -0.1}, False),
    ({"temperature": None}, True),
    ({"temperature": "1"}, False),
    ({"top_p": 0}, False),
    ({"top_p": 1}, True),
    ({"top_k": -1}, True),
    ({"top_k": 0}, False),
    ({"n": 128}, True),
    ({"n": 129}, False),
    ({"n": 1.5}, False),
    ({"stop": ""}, False),
    ({"stop": ["a"] * 65}, False),
    ({"stop": ["a", "b"]}, True),
    ({"logit_bias": {"5": 100}}, True),
    ({"logit_bias": {"5": 101}}, False),
    ({"logit_bias": {"x": 1}}, False),
    ({"stop_token_ids": [2**32]}, False),
    ({"regex": "a"}, False),
    ({"regex": None}, True),
]
OTHER: list[tuple[str, Body, bool]] = [
    ("chat", {"messages": []}, False),
    ("chat", {"messages": [{"content": "a"}]}, False),
    ("chat", {"messages": [{"role": "", "content": "a"}]}, False),
    ("chat", {"messages": [{"role": "u", "content": [{"type": "text", "text": "a"}]}]}, True),
    ("chat", {"messages": [{"role": "u", "content": [{"type": "image_url"}]}]}, False),
    ("chat", {"max_tokens": 0}, False),
    ("chat", {"response_format": {"type": "json_object"}}, False),
    ("chat", {"response_format": {"type": "text"}}, True),
    ("chat", {"tool_choice": "required"}, False),
    ("chat", {"stream": 1}, False),
    ("completion", {"prompt": [1, 2]}, True),
    ("completion", {"prompt": [[1], "a"]}, True),
    ("completion", {"prompt": []}, False),
    ("completion", {"prompt": [True]}, False),
    ("completion", {"suffix": "b"}, False),
    ("completion", {"logprobs": 51}, False),
    ("generate", {"text": None}, False),
    ("generate", {"text": "a", "input_ids": [1]}, False),
    ("generate", {"text": ["a", "b"]}, True),
    ("generate", {"top_logprobs_num": 51, "return_logprob": True}, False),
]


def cases() -> list[Any]:
    found = []
    for form in PARSERS:
        for fields, good in SAMPLING:
            body = {"sampling_params": fields} if form == "generate" else fields
            found.append(pytest.param(form, body, good, id=f"{form}-{json.dumps(fields):.40}"))
    return found + [pytest.param(*case, id=f"{case[0]}-{case[1]!r:.50}") for case in OTHER]


@pytest.mark.parametrize(("form", "fields", "good"), cases())
def test_schema_and_parser_agree(form: str, fields: Body, good: bool) -> None:
    schema, parse = PARSERS[form]
    body = {**LEAST[form], **fields}
    assert jsonschema_rs.is_valid(schema, body) is good
    if good:
        parse(body)
    else:
        with pytest.raises(RequestError):
            parse(body)


@pytest.mark.parametrize(
    ("path", "schema", "good", "bad"),
    [
        pytest.param(b"/v1/embeddings", request_schemas.EMBEDDINGS, {"input": "a"}, {}, id="embed"),
        *[
            pytest.param(
                path, request_schemas.EMBEDDINGS, good, bad, id=f"{path.decode()} {good!r:.50}"
            )
            for path in (b"/v1/embeddings", b"/v1/classify")
            for good, bad in (
                ({"input": [[1, 2], [3]]}, {"input": [[1], "a"]}),
                ({"input": [{"text": "a"}, {"image": "b"}]}, {"input": [{"text": "a"}, 5]}),
                ({"messages": HI}, {"messages": []}),
                ({"messages": [{"role": "user", "content": [{"type": "x"}]}]}, {"messages": "a"}),
                ({"messages": HI, "input": None}, {"messages": [{"content": "a"}]}),
                ({"text": "a"}, {"text": 5}),
                ({"text": ["a", "b"], "input": None}, {"text": []}),
            )
        ],
        pytest.param(b"/rerank", request_schemas.RERANK, {"query": "a"}, {}, id="rerank"),
        pytest.param(
            b"/v1/responses",
            request_schemas.RESPONSE,
            {"input": ["a"]},
            {"input": 5},
            id="response",
        ),
    ],
)
def test_schemas_of_what_is_passed_on(path: bytes, schema: Body, good: Body, bad: Body) -> None:
    assert jsonschema_rs.is_valid(schema, good)
    read_foreign(path, json.dumps(good).encode())
    assert not jsonschema_rs.is_valid(schema, bad)
    with pytest.raises(RequestError):
        read_foreign(path, json.dumps(bad).encode())


def test_every_generation_endpoint_is_described() -> None:
    described = {one.path.encode() for one in openapi.OPERATIONS if one.method == "post"}
    assert described >= HOT_PATHS


async def test_every_route_is_described_and_nothing_else() -> None:
    async with small_gateway() as gateway:
        headquarters = gateway.gateway.headquarters
        application = headquarters.admin.application(1000)
        application.add_routes(headquarters.experimenting.routes())
        served = {
            (route.method.lower(), resource.canonical)
            for route in application.router.routes()
            if (resource := route.resource) is not None and route.method != "HEAD"
        }
        answer = await gateway.get("/openapi.json")
    described = {(one.method, one.path) for one in openapi.OPERATIONS}
    assert described == served
    assert answer.status == 200
    assert answer.json == openapi.document()


@pytest.mark.parametrize(
    "schema",
    [pytest.param(one.body, id=one.path) for one in openapi.OPERATIONS if one.body is not None],
)
def test_its_schemas_are_schemas(schema: Body) -> None:
    assert jsonschema_rs.meta.is_valid(schema)
