"""What a prefix cache without end could have saved, from the prompts alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from radixgate.analysis.records import RequestRecord


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Cached prompt tokens beside what was possible. None: the server, or the run, did not tell."""

    cached_share: float | None  # of the prompt tokens
    bound_share: float | None  # the same with one cache without end for the whole fleet
    efficiency: float | None  # the one over the other; None also if nothing was reusable


class PrefixTree:
    """Byte strings with their common beginnings stored once."""

    def __init__(self) -> None:
        self._root: dict[int, _Edge] = {}

    def add(self, text: bytes) -> int:
        """How many leading bytes an earlier text had, too. O(edges on the way * log length)."""
        edges, done = self._root, 0
        while done < len(text):
            edge = edges.get(text[done])
            if edge is None:
                edges[text[done]] = _Edge(text[done:], {})
                return done
            common = _common(edge.text, text, done)
            if common < len(edge.text):
                self._split(edges, edge, common)
                edge = edges[text[done]]
            done += common
            edges = edge.next
        return done

    def _split(self, edges: "dict[int, _Edge]", edge: "_Edge", at: int) -> None:
        tail = _Edge(edge.text[at:], edge.next)
        edges[edge.text[0]] = _Edge(edge.text[:at], {tail.text[0]: tail})


@dataclass(slots=True)
class _Edge:
    text: bytes
    next: "dict[int, _Edge]"


def reusable_shares(prompts: Iterable[bytes], unit: int = 1) -> list[float]:
    """For each prompt in order, the share of it that begins an earlier one.

    `unit` is the bytes of a token where prompts are ids, 1 where they are text. As in a worker's
    cache, the last unit of a prompt is always computed.
    """
    tree = PrefixTree()
    shares = []
    for prompt in prompts:
        units = len(prompt) // unit
        common = tree.add(prompt) // unit
        shares.append(min(common, units - 1) / units if units else 0.0)
    return shares


def cache_use(records: Sequence[RequestRecord]) -> CacheUse:
    """Over the successes that tell their cached tokens."""
    told = [r for r in records if r.ok and r.cached_tokens is not None]
    prompt_tokens = sum(_tokens(record) for record in told)
    if prompt_tokens == 0:
        return CacheUse(None, None, None)
    cached = sum(record.cached_tokens or 0 for record in told) / prompt_tokens
    if any(record.reusable_share is None for record in told):
        return CacheUse(cached, None, None)
    bound = sum((r.reusable_share or 0.0) * _tokens(r) for r in told) / prompt_tokens
    return CacheUse(cached, bound, cached / bound if bound > 0 else None)


def _tokens(record: RequestRecord) -> int:
    return record.planned_prompt_tokens if record.prompt_tokens is None else record.prompt_tokens


def _common(edge: bytes, text: bytes, start: int) -> int:
    """Leading bytes that `edge` and `text[start:]` share, by halving."""
    low, high = 0, min(len(edge), len(text) - start)
    if edge[:high] == text[start : start + high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if edge[low:middle] == text[start + low : start + middle]:
            low = middle
        else:
            high = middle
    return low
