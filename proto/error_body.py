"""The OpenAI error object, and how an error reads inside a stream that has already begun."""

import math

import msgspec

from radixgate.errors import RadixgateError
from radixgate.proto import sse


def error_object(error: RadixgateError) -> dict[str, object]:
    """`{"message", "type", "param", "code"}`; `param` is null where no single field is at fault."""
    return {
        "message": error.message,
        "type": error.kind,
        "param": error.param,
        "code": error.code if error.code is not None else error.status,
    }


def error_body(error: RadixgateError) -> bytes:
    """The JSON body of an error answer."""
    return msgspec.json.encode({"error": error_object(error)})


def retry_after(error: RadixgateError) -> str | None:
    """The Retry-After header in whole seconds, never 0; None: there is none to send."""
    if error.retry_after_s is None:
        return None
    return str(max(1, math.ceil(error.retry_after_s)))


def error_event(error: RadixgateError) -> bytes:
    """The event that ends a stream which cannot go on; `[DONE]` follows it."""
    return sse.event(error_body(error))
