"""Whose fault it is that a stream ended with an error event: as what status it counts."""

from collections.abc import Mapping, Sequence

_WORKERS_OWN = 500
_CLIENTS = 400
# In an error's type or code, as engines and OpenAI write them, with nothing between the words.
_STATUSES = (
    ("ratelimit", 429),
    ("overloaded", 503),
    ("unavailable", 503),
    ("badrequest", _CLIENTS),
    ("invalid", _CLIENTS),
    ("notfound", _CLIENTS),
    ("unprocessable", _CLIENTS),
    ("contextlength", _CLIENTS),
    ("contentfilter", _CLIENTS),
    ("contentpolicy", _CLIENTS),
    ("image", _CLIENTS),
    ("authentication", _CLIENTS),
    ("permission", _CLIENTS),
)
# Of /v1/responses the codes are a closed list, and those without these words are the client's.
_OF_RESPONSES = (
    *_STATUSES,
    ("server", _WORKERS_OWN),
    ("internal", _WORKERS_OWN),
    ("timeout", _WORKERS_OWN),
)


def status_of(error: object) -> int:
    """400 to 599. `error`: as it stands in the event. What says nothing of it is the worker's own,
    but for SGLang's native form, a message alone: it is written for wrong requests only."""
    if not isinstance(error, dict):
        return _WORKERS_OWN
    if error.get("code") is None and error.get("type") is None:
        return _CLIENTS if isinstance(error.get("message"), str) else _WORKERS_OWN
    return _named(error, _STATUSES, _WORKERS_OWN)


def status_of_response(error: object) -> int:
    """The same of the events of /v1/responses, where what names nothing is the worker's own."""
    if not isinstance(error, dict) or (error.get("code") is None and error.get("type") is None):
        return _WORKERS_OWN
    return _named(error, _OF_RESPONSES, _CLIENTS)


def _named(error: Mapping[object, object], words: Sequence[tuple[str, int]], otherwise: int) -> int:
    """By the status that is its code, else by the words of its type and code."""
    code = error.get("code")
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        return code
    said = f"{error.get('type')} {code}".lower().replace("_", "").replace("-", "")
    return next((status for word, status in words if word in said), otherwise)
