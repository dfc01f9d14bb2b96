"""Which of the headers that may cross the gateway do cross it: the operator's lists."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError

Crosses = Callable[[bytes], bool]  # of a header's name in lower case
# Without these a worker could not read a body, nor a client an answer.
_ALWAYS = frozenset(
    (b"accept", b"content-type", b"content-encoding", b"content-length", b"transfer-encoding")
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class HeaderConfig:
    """Knobs of headers. Hop-by-hop fields end at the gateway whatever is listed here."""

    header_allowlist: tuple[str, ...] = knob(
        (),
        help="request headers that http:// workers get, besides those that describe the body;"
        " a name may end in *; nothing listed: all of them",
    )
    header_denylist: tuple[str, ...] = knob(
        (), help="request headers that no worker gets, listed above or not"
    )
    answer_header_denylist: tuple[str, ...] = knob(
        (), help="headers of http:// workers' answers that no client gets"
    )

    def __post_init__(self) -> None:
        lists = (self.header_allowlist, self.header_denylist, self.answer_header_denylist)
        for name in (name for names in lists for name in names):
            if not _NAME.fullmatch(name) or "*" in name[:-1]:
                raise ConfigError(f"{name!r:.100} is no header's name, nor one that ends in *")

    def to_worker(self) -> Crosses:
        return _crosses(self.header_allowlist, self.header_denylist)

    def to_client(self) -> Crosses:
        return _crosses((), self.answer_header_denylist)


def everything(name: bytes) -> bool:
    """The rule where nothing is listed."""
    return True


def _crosses(allowed: Sequence[str], denied: Sequence[str]) -> Crosses:
    """The deny list has the last word, but for what describes the body."""
    if not allowed and not denied:
        return everything
    may = _listed(allowed) if allowed else everything
    may_not = _listed(denied)
    return lambda name: name in _ALWAYS or (may(name) and not may_not(name))


def _listed(names: Sequence[str]) -> Crosses:
    lower = [name.lower().encode() for name in names]
    whole = frozenset(name for name in lower if not name.endswith(b"*"))
    starts = tuple(name[:-1] for name in lower if name.endswith(b"*"))
    return lambda name: name in whole or name.startswith(starts)
