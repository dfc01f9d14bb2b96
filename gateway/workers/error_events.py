"""Whose fault it is that a stream ended with an error event: as what status it counts."""

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
)


def status_of(error: object) -> int:
    """400 to 599. `error`: as it stands in the event. What says nothing of it is the worker's own,
    but for SGLang's native form, a message alone: it is written for wrong requests only."""
    if not isinstance(error, dict):
        return _WORKERS_OWN
    code, kind = error.get("code"), error.get("type")
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        return code
    if code is None and kind is None:
        return _CLIENTS if isinstance(error.get("message"), str) else _WORKERS_OWN
    said = f"{kind} {code}".lower().replace("_", "").replace("-", "")
    return next((status for word, status in _STATUSES if word in said), _WORKERS_OWN)
