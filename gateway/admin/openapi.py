"""The gateway's interface as an OpenAPI 3.1 document: `GET /openapi.json`.

https://spec.openapis.org/oas/v3.1.1.html
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from radixgate import __version__
from radixgate.gateway.admin.openapi_schemas import (
    ERROR,
    INFO,
    JSON,
    MODEL,
    MODELS,
    TOKENS,
    WORKER,
    Schema,
)
from radixgate.proto import request_schemas as requests
from radixgate.proto.request_schemas import FLAG, SOME_TEXT, TEXT, TOKEN_IDS, object_of

OPEN, CLIENT, ADMIN = "open", "client", "admin"
_SSE = "text/event-stream"
_PLAIN = "text/plain"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    summary: str
    key: str  # who may: anyone, a client, an admin
    body: Schema | None = None  # None: it takes none
    query: Mapping[str, Schema] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()  # of the query
    answer: Schema = field(default_factory=dict)
    content: Sequence[str] = (JSON,)


def _generation(path: str, summary: str, body: Schema) -> Operation:
    return Operation("post", path, summary, CLIENT, body, content=(JSON, _SSE))


_URL: Schema = {
    "type": "string",
    "pattern": "^(grpc|http)://[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?:[1-9][0-9]{0,3}$",
    "description": "grpc://host:port or http://host:port; for tls, grpcs:// and https://",
}
_LABELS: Schema = {
    "type": ["object", "null"],
    "maxProperties": 64,
    "propertyNames": {"maxLength": 128},
    "additionalProperties": {"type": "string", "maxLength": 128},
}
_ADD: Schema = {
    **object_of(
        {
            "url": _URL,
            "api_key": {"type": ["string", "null"], "pattern": "^[!-~]+$"},
            "worker_type": {"enum": ["regular", None]},
            "labels": _LABELS,
        },
        "url",
    ),
    "additionalProperties": False,
}
_CHANGE: Schema = {
    **object_of({"state": {"enum": ["paused", "ready", None]}, "labels": _LABELS}),
    "additionalProperties": False,
    "anyOf": [
        object_of({"state": {"type": "string"}}, "state"),
        object_of({"labels": {"type": "object"}}, "labels"),
    ],
}
_ABORT: Schema = {
    "anyOf": [
        object_of(
            {"rid": {"type": "string", "minLength": 1}, "prefix": FLAG, "abort_all": FLAG}, "rid"
        ),
        object_of({"abort_all": {"const": True}, "rid": TEXT}, "abort_all"),
    ]
}
_TOKENIZE: Schema = {
    "anyOf": [
        object_of({"model": TEXT, "prompt": SOME_TEXT, "add_special_tokens": FLAG}, "prompt"),
        object_of({"model": TEXT, "messages": requests.CHAT["properties"]["messages"]}, "messages"),
    ]
}
_DETOKENIZE = object_of(
    {"model": TEXT, "tokens": {**TOKEN_IDS, "minItems": 0}, "skip_special_tokens": FLAG}
)
_URL_QUERY = {"url": _URL}
_NEEDED = frozenset(_URL_QUERY)
_STORED = "/v1/responses/{name}"

OPERATIONS: tuple[Operation, ...] = (
    _generation("/v1/chat/completions", "A chat's next message.", requests.CHAT),
    _generation("/v1/completions", "How a prompt goes on.", requests.COMPLETION),
    _generation("/generate", "The same in SGLang's form.", requests.GENERATE),
    _generation("/v1/embeddings", "Passed on to http:// workers.", requests.EMBEDDINGS),
    _generation("/v1/classify", "Passed on to http:// workers.", requests.EMBEDDINGS),
    _generation("/v1/rerank", "Passed on to http:// workers.", requests.RERANK),
    _generation("/rerank", "Passed on to http:// workers.", requests.RERANK),
    _generation("/v1/responses", "Passed on to http:// workers.", requests.RESPONSE),
    Operation("get", _STORED, "A stored response, of who has it.", CLIENT, answer=INFO),
    Operation("delete", _STORED, "Forget it.", CLIENT, answer=INFO),
    Operation("post", f"{_STORED}/cancel", "End it.", CLIENT, answer=INFO),
    Operation("get", f"{_STORED}/input_items", "What it answered.", CLIENT, answer=INFO),
    Operation("get", "/v1/models", "The models that workers serve now.", CLIENT, answer=MODELS),
    Operation("get", "/v1/models/{name}", "One of them.", CLIENT, answer=MODEL),
    Operation("post", "/tokenize", "Text or messages to ids.", CLIENT, _TOKENIZE, answer=TOKENS),
    Operation("post", "/v1/tokenize", "As /tokenize.", CLIENT, _TOKENIZE, answer=TOKENS),
    Operation("post", "/detokenize", "Ids to text.", CLIENT, _DETOKENIZE, answer=INFO),
    Operation("post", "/v1/detokenize", "As /detokenize.", CLIENT, _DETOKENIZE, answer=INFO),
    Operation("get", "/get_model_info", "Of the first ready worker.", CLIENT, answer=INFO),
    Operation("get", "/health", "The process lives.", OPEN, answer=INFO),
    Operation("get", "/liveness", "As /health.", OPEN, answer=INFO),
    Operation("get", "/health_generate", "A worker generates.", ADMIN, answer=INFO),
    Operation("get", "/readiness", "It can answer; 503 if not.", OPEN, answer=INFO),
    Operation("get", "/openapi.json", "This document.", OPEN, answer=INFO),
    Operation("get", "/get_server_info", "Of every ready worker.", ADMIN, answer=INFO),
    Operation("get", "/metrics", "In Prometheus' text form.", ADMIN, content=(_PLAIN,)),
    Operation("get", "/get_loads", "Requests a worker.", ADMIN, answer=INFO),
    Operation("get", "/v1/loads", "Requests and tokens a worker.", ADMIN, answer=INFO),
    Operation(
        "post", "/flush_cache", "Workers drop their caches; 409 if busy.", ADMIN, answer=INFO
    ),
    Operation("get", "/flush_cache", "As POST.", ADMIN, answer=INFO),
    Operation("post", "/abort_request", "End one request, or all.", ADMIN, _ABORT, answer=INFO),
    Operation("post", "/reload", "Settings are read again, all or none.", ADMIN, answer=INFO),
    Operation(
        "post",
        "/explain",
        "Who would get this request, and why; nothing is sent.",
        ADMIN,
        requests.CHAT,
        query={"path": {"const": "/v1/chat/completions"}, "tenant": SOME_TEXT},
        answer=INFO,
    ),
    Operation("get", "/experiments", "All experiments.", ADMIN, answer=INFO),
    Operation("post", "/experiments", "Declare one by its name.", ADMIN, INFO, answer=INFO),
    Operation("get", "/experiments/{name}", "How it stands.", ADMIN, answer=INFO),
    Operation("post", "/experiments/{name}/start", "Begin.", ADMIN, answer=INFO),
    Operation("post", "/experiments/{name}/stop", "End, and go back.", ADMIN, answer=INFO),
    Operation("get", "/mirror", "What workers are believed to hold.", ADMIN, answer=INFO),
    Operation(
        "get",
        "/mirror/{name}",
        "One worker's blocks, in pages.",
        ADMIN,
        query={
            "after": {"type": "string", "pattern": "^[0-9a-f]{1,16}$"},
            "limit": {"type": "integer", "minimum": 0},
        },
        answer=INFO,
    ),
    Operation("get", "/workers", "All workers.", ADMIN, answer=INFO),
    Operation("post", "/workers", "Add a worker.", ADMIN, _ADD, answer=WORKER),
    Operation("get", "/workers/{name}", "One worker, by id or URL.", ADMIN, answer=WORKER),
    Operation("put", "/workers/{name}", "Pause, resume, label.", ADMIN, _CHANGE, answer=WORKER),
    Operation("delete", "/workers/{name}", "Remove it; it drains.", ADMIN, answer=INFO),
    Operation("get", "/list_workers", "Their URLs.", ADMIN, answer=INFO),
    Operation(
        "post",
        "/add_worker",
        "As POST /workers.",
        ADMIN,
        query=_URL_QUERY,
        needed=_NEEDED,
        answer=WORKER,
    ),
    Operation(
        "post",
        "/remove_worker",
        "As DELETE.",
        ADMIN,
        query=_URL_QUERY,
        needed=_NEEDED,
        answer=INFO,
    ),
)


def document() -> dict[str, object]:
    """The whole document, made anew; a client may not change another's."""
    paths: dict[str, dict[str, object]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = _described(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "radixgate",
            "version": __version__,
            "description": "One address for a fleet of LLM workers.",
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": ERROR},
        },
        "paths": paths,
    }


def _described(one: Operation) -> dict[str, object]:
    described: dict[str, object] = {
        "summary": one.summary,
        "responses": {
            "200": {
                "description": "As asked.",
                "content": {kind: {"schema": one.answer} for kind in one.content},
            },
            "default": {
                "description": "Why not. A key is needed where the gateway was given any.",
                "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    parameters: list[Schema] = [
        {"name": name, "in": "query", "required": name in one.needed, "schema": schema}
        for name, schema in one.query.items()
    ]
    if "{name}" in one.path:
        parameters.append({"name": "name", "in": "path", "required": True, "schema": SOME_TEXT})
    if parameters:
        described["parameters"] = parameters
    if one.body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": one.body}}}
    if one.key != OPEN:
        # The empty one: a gateway without keys asks for none.
        described["security"] = [{"key": []}, {}]
    return described
