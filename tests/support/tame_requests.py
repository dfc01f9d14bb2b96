"""What a schema cannot say, put right in generated requests: loaded by schemathesis as its hooks.

A toy model has its name and 264 tokens, a minimum is at most its maximum, and nobody waits for
thousands of tokens. Whatever is wrong with a request by its schema stays wrong.
"""

from typing import Any, cast

import schemathesis

_MODEL = "toy"
_LONGEST = 4  # tokens of an answer
_VOCABULARY = 256  # the toy's, without its special tokens
_COUNTS = {
    "/v1/chat/completions": ("max_tokens", "max_completion_tokens", "min_tokens"),
    "/v1/completions": ("max_tokens", "max_completion_tokens", "min_tokens"),
    "/generate": ("max_new_tokens", "min_new_tokens"),
}
_IDS = ("prompt", "input_ids", "tokens", "stop_token_ids", "token_ids_logprob")


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, object]
) -> None:
    """Called with each request that is about to be sent."""
    _keep_here(case.query)
    _keep_here(case.body)
    body = case.body
    if not isinstance(body, dict):
        return
    for name in _IDS:
        if name in body:
            body[name] = cast(Any, _in_vocabulary(body[name]))
    counts = _COUNTS.get(case.operation.path)
    if counts is None:
        return
    if isinstance(body.get("model"), str):
        # While a worker that was added has not said what it serves, another model is rightly 503.
        body["model"] = _MODEL
    where = body.setdefault("sampling_params", {}) if case.operation.path == "/generate" else body
    if isinstance(where, dict):
        _tame(where, *counts)


def _keep_here(where: object) -> None:
    """A worker that is to be added is on this machine, and is not there."""
    if isinstance(where, dict) and "://" in str(where.get("url")):
        where["url"] = "http://127.0.0.1:9"


def _tame(where: dict[str, Any], most: str, *others: str) -> None:
    if where.get(most) is None:
        where[most] = _LONGEST
    for name in (most, *others):
        if _is_whole(where.get(name)) and where[name] > _LONGEST:
            where[name] = _LONGEST
    least = others[-1]
    if _is_whole(where.get(least)) and where[least] > 0:
        where[least] = 1 if where[most] else 0
    if _is_whole(where.get("n")) and 2 < where["n"] <= 128:
        where["n"] = 2
    if "stop_token_ids" in where:
        where["stop_token_ids"] = _in_vocabulary(where["stop_token_ids"])
    if isinstance(where.get("logit_bias"), dict):
        where["logit_bias"] = {
            str(int(name) % _VOCABULARY) if name.isascii() and name.isdigit() else name: bias
            for name, bias in where["logit_bias"].items()
        }


def _in_vocabulary(value: object) -> object:
    if isinstance(value, list):
        return [_in_vocabulary(one) for one in value]
    if isinstance(value, int | float) and _is_whole(value) and 0 <= value < 2**32:
        return value % _VOCABULARY
    return value


def _is_whole(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and value.is_integer())
