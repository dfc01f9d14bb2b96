"""What those who run are about to add to the cache, so that others wait for it."""

from collections.abc import Iterable

from radixgate.worker.requests.sequence import TokenSequence
from radixgate.worker.schedule.kv_memory import KvMemory, Prefix


class ComingPrefixes:
    """Prefixes that somebody computes by now. O(those who still compute their prompts)."""

    def __init__(self, memory: KvMemory, *, shared: bool) -> None:
        """Not `shared`: there is no cache, and nothing to wait for."""
        self._memory = memory
        self._shared = shared
        self._in_flight: frozenset[Prefix] = frozenset()

    def look_ahead(self, running: Iterable[TokenSequence]) -> None:
        """Before a step is planned: what passes in flight add, the step after it finds cached."""
        flying = [s for s in running if s.in_flight and s.prefilling] if self._shared else []
        self._in_flight = self._next_of(flying)

    def prefixes(self, running: Iterable[TokenSequence], *, by_prefix: bool) -> frozenset[Prefix]:
        """What a newcomer would compute a second time. `by_prefix`: the policy goes by the cache,
        and so also by what running prompts have not got to yet."""
        if not by_prefix:
            return self._in_flight
        # Without credit its last page may stay away for long.
        paid = (s for s in running if s.prefilling and s.request.credit > 0)
        return self._in_flight | self._next_of(paid)

    def _next_of(self, sequences: Iterable[TokenSequence]) -> frozenset[Prefix]:
        found = (self._memory.next_prefix(sequence) for sequence in sequences)
        return frozenset(prefix for prefix in found if prefix is not None)
