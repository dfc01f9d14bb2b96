"""What all requests of one gateway share: the fleet, the ways to its workers, rules and books."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from radixgate.clock import Clock
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.attempt import WorkerClient
from radixgate.gateway.attempt.request_ids import RequestIds
from radixgate.gateway.choice.another_try import AnotherTry
from radixgate.gateway.choice.chooser import Chooser
from radixgate.gateway.exchange.held_requests import HeldRequests
from radixgate.gateway.heads.own_headers import OwnHeaders
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.observe.metrics import FinalOutcome, GatewayMetrics
from radixgate.gateway.settings.gateway_config import GatewayConfig


@dataclass(frozen=True, slots=True)
class PatienceRule:
    """How long a worker may be silent, in seconds."""

    first_byte_s: float  # before the first byte of a body
    idle_s: float  # between two pieces of it

    @classmethod
    def of(cls, config: GatewayConfig) -> "PatienceRule":
        return cls(config.request_timeout_secs, config.stream_idle_timeout_secs)


@dataclass(frozen=True, slots=True)
class Core:
    """Passed to every exchange; read only but for what its parts own."""

    choice: Chooser
    asking: Asking
    clients: Mapping[str, WorkerClient]  # by worker id; changes as workers come and go
    on_worker_failed: Callable[[str], None]  # it is worth a health check now
    policy: str  # its name, as a header shows it
    patience: PatienceRule
    another_try: AnotherTry
    metrics: GatewayMetrics
    deadlines: Deadlines
    turn: LoopTurn
    clock: Clock
    rng: random.Random
    request_ids: RequestIds
    held: HeldRequests
    stored: StoredResponses
    own_headers: OwnHeaders  # of what is answered without a worker
    on_counted: Callable[[FinalOutcome], None] | None = None  # how it ended; None: nobody is told
    passes_authorization: bool = True  # the gateway has no keys: what a client sends is a worker's

    def turned_away(self, outcome: FinalOutcome) -> None:
        """Count a request that was never in flight."""
        self.metrics.turned_away(outcome)
        if self.on_counted is not None:
            self.on_counted(outcome)
