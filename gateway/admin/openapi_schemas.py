"""JSON Schemas of the gateway's own answers, as `/openapi.json` shows them."""

from typing import Any

Schema = dict[str, Any]
JSON = "application/json"

# An object that says more in its own words than a schema would.
INFO: Schema = {"type": "object"}
ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "integer", "null"]},
            },
        }
    },
}
MODEL: Schema = {
    "type": "object",
    "required": ["id", "object", "created", "owned_by"],
    "properties": {"id": {"type": "string"}, "created": {"type": "integer"}},
}
MODELS: Schema = {
    "type": "object",
    "required": ["object", "data"],
    "properties": {"object": {"const": "list"}, "data": {"type": "array", "items": MODEL}},
}
TOKENS: Schema = {
    "type": "object",
    "required": ["tokens", "count", "max_model_len"],
    "properties": {"max_model_len": {"type": "integer"}},
}
WORKER: Schema = {
    "type": "object",
    "required": ["id", "url", "state"],
    "properties": {"id": {"type": "string"}, "state": {"type": "string"}},
}
