"""JSON Schemas of what clients send: the rules of the parsers, in a form that tools read.

Ranges are the parsers' own. What a schema cannot say (a minimum over a maximum, a prompt longer
than the context) is only in the parsers.
"""

from collections.abc import Mapping
from typing import Any

from radixgate.proto.fields import MAX_TOKEN_ID
from radixgate.proto.openai import MAX_PROMPTS
from radixgate.proto.sampling import MAX_BIAS, MAX_STOPS, MAX_TOP_LOGPROBS, RANGES
from radixgate.proto.sampling_fields import UNHEEDED
from radixgate.proto.unsupported import CONSTRAINTS

Schema = dict[str, Any]

TOKEN_IDS: Schema = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "integer", "minimum": 0, "maximum": MAX_TOKEN_ID},
}
TEXT: Schema = {"type": ["string", "null"]}
# A prompt: with no text there would be no token to begin from.
SOME_TEXT: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": ["boolean", "null"]}
_INT32: Schema = {"type": ["integer", "null"], "minimum": -(2**31), "maximum": 2**31 - 1}
_WHOLE_FIELDS = ("n", "max_tokens", "top_logprobs")


def object_of(properties: Mapping[str, Schema], *required: str) -> Schema:
    """An object; fields that are not named are let through."""
    schema: Schema = {"type": "object", "properties": dict(properties)}
    return {**schema, "required": list(required)} if required else schema


def _range(name: str, low: float, high: float) -> Schema:
    kind = "integer" if name in _WHOLE_FIELDS else "number"
    least = "exclusiveMinimum" if name == "top_p" else "minimum"
    return {"type": [kind, "null"], least: low, "maximum": high}


_RANGED: dict[str, Schema] = {name: _range(name, low, high) for name, low, high in RANGES}


def _tokens(least: int) -> Schema:
    return {"type": ["integer", "null"], "minimum": least}


_STOP: Schema = {
    "anyOf": [
        {"type": "null"},
        {"type": "string", "minLength": 1},
        {"type": "array", "maxItems": MAX_STOPS, "items": {"type": "string", "minLength": 1}},
    ]
}
_LOGIT_BIAS: Schema = {
    "type": ["object", "null"],
    "propertyNames": {"pattern": "^[0-9]{1,9}$"},
    "additionalProperties": {"type": "number", "minimum": -MAX_BIAS, "maximum": MAX_BIAS},
}
_ANYTHING: Schema = {}
_UNCONSTRAINED: Schema = {"type": "null", "description": "not supported yet"}
_SAMPLING: dict[str, Schema] = {
    **{
        name: schema
        for name, schema in _RANGED.items()
        if name not in ("max_tokens", "top_logprobs")
    },
    "top_k": {"type": ["integer", "null"], "minimum": -1, "not": {"const": 0}},
    "seed": {"type": ["integer", "null"]},
    "stop": _STOP,
    "stop_token_ids": {**TOKEN_IDS, "type": ["array", "null"], "minItems": 0},
    "logit_bias": _LOGIT_BIAS,
    "ignore_eos": FLAG,
    "skip_special_tokens": FLAG,
    "no_stop_trim": FLAG,
    **dict.fromkeys(CONSTRAINTS, _UNCONSTRAINED),
}
_ROUTING: dict[str, Schema] = {
    "model": TEXT,
    "stream": FLAG,
    "priority": _INT32,
    "cache_salt": TEXT,
    "extra_key": TEXT,
    "session_id": TEXT,
}
_OPENAI: dict[str, Schema] = {
    **_SAMPLING,
    **_ROUTING,
    "user": TEXT,
    "rid": TEXT,
    "max_completion_tokens": _tokens(1),
    "max_tokens": _tokens(1),
    "min_tokens": _tokens(0),
    "stream_options": {
        "type": ["object", "null"],
        "properties": {"include_usage": FLAG, "continuous_usage_stats": FLAG},
    },
    "response_format": {
        "type": ["object", "null"],
        "properties": {"type": {"enum": ["text", None]}},
    },
    "tool_choice": {"enum": ["none", "auto", None]},
    "lora_path": {"enum": ["", None]},
}
_PART = object_of({"type": {"const": "text"}, "text": {"type": "string"}}, "type", "text")
_MESSAGE = object_of(
    {
        "role": {"type": "string", "minLength": 1},
        "content": {"type": ["string", "null", "array"], "items": _PART},
    },
    "role",
)
_PROMPTS: Schema = {
    "anyOf": [
        SOME_TEXT,
        TOKEN_IDS,
        {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_PROMPTS,
            "items": {"anyOf": [SOME_TEXT, TOKEN_IDS]},
        },
    ]
}

# As completions have them, but all of one kind.
_INPUTS: Schema = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": {"type": "object"}},
        SOME_TEXT,
        TOKEN_IDS,
        {"type": "array", "minItems": 1, "items": SOME_TEXT},
        {"type": "array", "minItems": 1, "items": TOKEN_IDS},
    ]
}

CHAT = object_of(
    {
        **_OPENAI,
        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
        "tools": {"type": ["array", "null"], "items": {"type": "object"}},
        "chat_template_kwargs": {"type": ["object", "null"]},
        "logprobs": FLAG,
        "top_logprobs": _RANGED["top_logprobs"],
    },
    "messages",
)
COMPLETION = object_of(
    {
        **_OPENAI,
        "prompt": _PROMPTS,
        "echo": FLAG,
        "suffix": {"enum": ["", None]},
        "logprobs": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_TOP_LOGPROBS},
    },
    "prompt",
)
_NATIVE_FIELDS: dict[str, Schema] = {
    **_ROUTING,
    "routing_key": TEXT,
    "sampling_params": {
        "type": ["object", "null"],
        "properties": {
            **_SAMPLING,
            "max_new_tokens": _tokens(0),
            "min_new_tokens": _tokens(0),
            "sampling_seed": {"type": ["integer", "null"]},
            "include_stop_str_in_output": FLAG,
            **dict.fromkeys(UNHEEDED, _ANYTHING),
        },
        "additionalProperties": False,
    },
    "return_logprob": FLAG,
    "return_text_in_logprobs": FLAG,
    "top_logprobs_num": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_TOP_LOGPROBS},
    "logprob_start_len": {"type": ["integer", "null"]},
    "token_ids_logprob": {**TOKEN_IDS, "type": ["array", "null"], "minItems": 0},
}
_TEXTS: Schema = {
    "anyOf": [
        SOME_TEXT,
        {"type": "array", "minItems": 1, "maxItems": MAX_PROMPTS, "items": SOME_TEXT},
    ]
}
_IDS: Schema = {
    "anyOf": [
        TOKEN_IDS,
        {"type": "array", "minItems": 1, "maxItems": MAX_PROMPTS, "items": TOKEN_IDS},
    ]
}
_NULL: Schema = {"type": "null"}
GENERATE: Schema = {
    "anyOf": [
        object_of({**_NATIVE_FIELDS, "text": _TEXTS, "input_ids": _NULL}, "text"),
        object_of({**_NATIVE_FIELDS, "input_ids": _IDS, "text": _NULL}, "input_ids"),
    ]
}
_ANY_MESSAGES: Schema = {
    "type": "array",
    "minItems": 1,
    "items": object_of(
        {"role": {"type": "string"}, "content": {"type": ["string", "null", "array"]}}, "role"
    ),
}
_EMBEDDED: Mapping[str, Schema] = {"model": TEXT, "user": TEXT, "priority": {}}
# A text or a picture each; or messages, as vLLM takes them; `text` is what SGLang classifies.
EMBEDDINGS: Schema = {
    "anyOf": [
        object_of({**_EMBEDDED, "input": _INPUTS, "text": _NULL, "messages": _NULL}, "input"),
        object_of({**_EMBEDDED, "text": _INPUTS, "messages": _NULL}, "text"),
        object_of({**_EMBEDDED, "messages": _ANY_MESSAGES}, "messages"),
    ]
}
RERANK = object_of(
    {"model": TEXT, "query": {"type": ["string", "object"]}, "documents": {"type": "array"}},
    "query",
)
RESPONSE = object_of(
    {
        "model": TEXT,
        "input": {"type": ["string", "array"]},
        "instructions": TEXT,
        "stream": FLAG,
        "temperature": {"type": ["number", "null"], "minimum": 0},
        "top_p": _RANGED["top_p"],
        "tools": {"type": ["array", "null"]},
    },
)
