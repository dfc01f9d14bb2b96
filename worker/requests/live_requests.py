"""The requests that have not ended yet, by who asked and by when they must end."""

from collections.abc import Iterator

from sortedcontainers import SortedDict

from radixgate.worker.requests.outbox import Sink
from radixgate.worker.requests.sequence import Request


class LiveRequests:
    """Every verb costs O(1), or O(log n) for a request with a deadline."""

    def __init__(self) -> None:
        self._by_sink: dict[Sink, dict[int, Request]] = {}
        self._by_deadline = SortedDict()  # (deadline, key) -> Request
        # The highest number of each sink that numbers its requests, until it leaves.
        self.seen: dict[Sink, int] = {}

    def __iter__(self) -> Iterator[Request]:
        """A snapshot, so that the caller may end requests on the way."""
        return iter([r for requests in self._by_sink.values() for r in requests.values()])

    def find(self, sink: Sink, handle: int) -> Request | None:
        return self._by_sink.get(sink, {}).get(handle)

    def leave(self, sink: Sink) -> list[Request]:
        """The sink sends nothing more; what it still has running."""
        self.seen.pop(sink, None)
        return list(self._by_sink.get(sink, {}).values())

    def add(self, request: Request) -> None:
        self._by_sink.setdefault(request.sink, {})[request.handle] = request
        if request.number is not None:
            self.seen[request.sink] = max(request.number, self.seen.get(request.sink, 0))
        if request.deadline_s is not None:
            self._by_deadline[request.deadline_s, request.key] = request

    def remove(self, request: Request) -> None:
        requests = self._by_sink[request.sink]
        del requests[request.handle]
        if not requests:
            del self._by_sink[request.sink]
        if request.deadline_s is not None:
            del self._by_deadline[request.deadline_s, request.key]

    def next_deadline_s(self) -> float | None:
        """On the engine's clock; None: nobody has one."""
        return self._by_deadline.peekitem(0)[0][0] if self._by_deadline else None

    def overdue(self, now_s: float) -> list[Request]:
        return [self._by_deadline[key] for key in self._by_deadline.irange(maximum=(now_s, 2**63))]
