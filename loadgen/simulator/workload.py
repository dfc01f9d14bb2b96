"""When the requests of a trace are sent: at the trace's pace, or each after the answer before."""

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from radixgate.loadgen.simulator.trace import TracedRequest


@dataclass(frozen=True, slots=True)
class Client:
    """Sends its requests one after the other: each `think_s` after the answer before."""

    starts_s: float
    requests: Sequence[TracedRequest]


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that is sent. In an open loop each request is a client of its own."""

    clients: Sequence[Client]

    def __len__(self) -> int:
        """Requests."""
        return sum(len(client.requests) for client in self.clients)

    def at_once(self) -> "Workload":
        """All clients from the start, and none of them thinks."""
        return Workload([_hurried(client) for client in self.clients])


def open_loop(requests: Sequence[TracedRequest], requests_per_s: float) -> Workload:
    """The trace's own times, in order, scaled so that its mean pace is this one."""
    first, last = requests[0].at_s, requests[-1].at_s
    # Of a step that comes at once, last of all, nobody knows how long it lasts: it is no pace.
    arrivals = bisect_left(requests, last, key=lambda request: request.at_s) + 1
    pace = arrivals / (last - first) if last > first else requests_per_s
    scale = pace / requests_per_s
    return Workload([Client((r.at_s - first) * scale, (r,)) for r in requests])


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How much of a closed-loop trace is replayed."""

    sessions: int
    max_turns: int
    think_cap_s: float


def sessions_of(
    requests: Sequence[TracedRequest], limits: SessionLimits, rng: random.Random
) -> list[Sequence[TracedRequest]]:
    """At most so many sessions, drawn at random if there are more, each cut and hastened."""
    by_session: dict[str | None, list[TracedRequest]] = defaultdict(list)
    for request in requests:
        by_session[request.session].append(request)
    names = list(by_session)
    if len(names) > limits.sessions:
        names = rng.sample(names, limits.sessions)
    return [
        [
            replace(request, think_s=min(request.think_s, limits.think_cap_s))
            for request in sorted(by_session[name], key=lambda r: r.turn)[: limits.max_turns]
        ]
        for name in names
    ]


def closed_loop(
    sessions: Sequence[Sequence[TracedRequest]], requests_per_s: float, rng: random.Random
) -> Workload:
    """Sessions that begin at random times, at a pace that offers so many requests a second."""
    turns = sum(map(len, sessions)) / len(sessions)
    clients, start = [], 0.0
    for session in sessions:
        start += rng.expovariate(requests_per_s / turns)
        clients.append(Client(start, session))
    return Workload(clients)


def _hurried(client: Client) -> Client:
    return Client(0.0, [replace(request, think_s=0.0) for request in client.requests])
