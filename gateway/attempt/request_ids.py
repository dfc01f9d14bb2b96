"""A name for each request: the client's own where it is fit to be passed on, else one of ours."""

import random
import re

from radixgate.gateway.attempt.attempt import Headers

HEADER = b"x-request-id"
# Visible ASCII without quotes and separators that a log or a header could be confused by.
_FIT = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


def fit_request_id(headers: Headers) -> str | None:
    """The id that the client gave; None if there is none, or it is unfit to be passed on."""
    for name, value in headers:
        if name == HEADER and _FIT.fullmatch(value):
            return value.decode("ascii")
    return None


class RequestIds:
    """Ids that differ within a process by a number, and between processes by 48 random bits."""

    def __init__(self, rng: random.Random) -> None:
        self._prefix = f"rg-{rng.getrandbits(48):012x}-"
        self._made = 0

    def make(self) -> str:
        self._made += 1
        return f"{self._prefix}{self._made:x}"
