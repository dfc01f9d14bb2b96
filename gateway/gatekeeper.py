"""Between the front door and the core: who asks, and may it ask now?"""

from dataclasses import dataclass

from radixgate.clock import Clock
from radixgate.errors import RadixgateError, TooManyRequests
from radixgate.gateway import http_answer
from radixgate.gateway.aborted_answer import end_unbegun
from radixgate.gateway.attempt import AnswerCounts, Attempt, Downstream
from radixgate.gateway.caller import Caller
from radixgate.gateway.core import Core
from radixgate.gateway.foreign_request import read_foreign
from radixgate.gateway.forwarder import Forwarder
from radixgate.gateway.generator import Generator
from radixgate.gateway.key_ring import KeyRing
from radixgate.gateway.limits_config import LimitsConfig
from radixgate.gateway.metrics import FinalOutcome
from radixgate.gateway.passage import Passage
from radixgate.gateway.rate_limits import RateLimits
from radixgate.gateway.request_head import RequestHead
from radixgate.gateway.waiting_line import WaitingLine


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request must pass besides the keys."""

    line: WaitingLine | None  # None: any number may run
    rates: RateLimits | None  # None: no tenant is limited
    queue_timeout_s: float

    @classmethod
    def of(cls, config: LimitsConfig, keys: KeyRing, clock: Clock) -> "Limits":
        rates = RateLimits(config, keys.limits, clock)
        return cls(
            WaitingLine(config) if config.bounds_concurrency else None,
            rates if rates.any else None,
            config.queue_timeout_secs,
        )

    def changed(self, config: LimitsConfig, keys: KeyRing, clock: Clock) -> "Limits":
        """What holds after a change of settings: who runs and who waits is still counted, and no
        tenant has more left than before."""
        rates = RateLimits(config, keys.limits, clock, self.rates)
        line = self.line
        if line is not None:
            line.resize(config)
        if line is None or not config.bounds_concurrency:
            # Who runs without a limit is not counted, so a first limit is for those that come.
            line = WaitingLine(config) if config.bounds_concurrency else None
        return Limits(line, rates if rates.any else None, config.queue_timeout_secs)


def generator_of(forwarder: Forwarder, core: Core, keys: KeyRing, limits: Limits) -> Generator:
    """What stands behind the front door; the forwarder itself where nothing is asked first."""
    if keys.used or limits.line is not None or limits.rates is not None:
        return Gatekeeper(forwarder, core, keys, limits)
    return forwarder


class Refusal:
    """An `Attempt` that has ended already."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def delivered(self) -> AnswerCounts | None:
        return None

    def cancel(self) -> None: ...


REFUSED = Refusal()
_STRANGER = Caller()


class Gatekeeper:
    """Lets requests with a known key through, as many as may; the others cost no worker anything.

    The `Desk` of the passages. Without limits a request has no passage.
    """

    def __init__(self, forwarder: Forwarder, core: Core, keys: KeyRing, limits: Limits) -> None:
        self._forwarder = forwarder
        self._keys = keys
        self._core = core
        self._line = limits.line
        self._rates = limits.rates
        self._queue_timeout_s = limits.queue_timeout_s
        if limits.line is not None:
            line = limits.line
            core.metrics.read_waiting = lambda: line.waiting

    def generate(self, head: RequestHead, body: bytes, downstream: Downstream) -> Attempt:
        try:
            caller = self._keys.caller(head.authorization)
        except RadixgateError as error:
            told = self._forwarder.told(head, downstream, _STRANGER)
            self._refuse(head, error, told, FinalOutcome.CLIENT_ERROR)
            return REFUSED
        if self._line is None and self._rates is None:
            return self._forwarder.generate(head, body, downstream, caller)
        passage = Passage(self, head, body, downstream, caller)
        try:
            self._admit(passage)
        except TooManyRequests as error:
            told = self._forwarder.told(head, downstream, caller)
            self._refuse(head, error, told, FinalOutcome.REJECTED)
            return REFUSED
        return passage

    def _admit(self, passage: Passage) -> None:
        line, rates, tenant = self._line, self._rates, passage.caller.tenant
        # Before the rates: a request that finds no room is not charged for.
        must_wait = line is not None and not line.has_room
        if line is not None and must_wait:
            line.check_room()
        if rates is not None:
            passage.charged = rates.take(tenant, len(passage.body))
        passage.arrived_at = self._core.clock.now()
        if line is None:
            passage.start()
            return
        if must_wait:
            passage.priority = _priority(passage)
        core = self._core
        until = passage.arrived_at + self._queue_timeout_s
        passage.enter(line, core.deadlines, core.held, until)

    # ------------------------------------------------------------ from a passage

    def begin(self, passage: Passage) -> Attempt:
        return self._forwarder.generate(
            passage.head, passage.body, passage, passage.caller, passage.arrived_at
        )

    def turn_away(self, passage: Passage, error: RadixgateError | None) -> None:
        head, client, caller = passage.head, passage.client, passage.caller
        if error is None:
            self._core.metrics.turned_away(FinalOutcome.CLIENT_DISCONNECT)
            self._forwarder.left(head, client, caller, passage.arrived_at)
        else:
            told = self._forwarder.told(head, client, caller, passage.arrived_at)
            self._refuse(head, error, told, FinalOutcome.REJECTED)

    def abort(self, passage: Passage) -> None:
        told = self._forwarder.told(
            passage.head, passage.client, passage.caller, passage.arrived_at
        )
        end_unbegun(self._core, passage.head, passage.body, told)

    def ended(self, passage: Passage, counts: AnswerCounts | None) -> None:
        if self._rates is not None:
            self._rates.settle(passage.caller.tenant, passage.charged, counts)

    def _refuse(
        self,
        head: RequestHead,
        error: RadixgateError,
        downstream: Downstream,
        outcome: FinalOutcome,
    ) -> None:
        self._core.metrics.turned_away(outcome)
        status, headers, body = http_answer.error_answer(error)
        downstream.on_head(status, headers + self._core.own_headers.of(head.request_id))
        downstream.on_body(body)
        downstream.on_end(None)


def _priority(passage: Passage) -> int:
    """The key's, else the request's own; a body that cannot be read is refused in its turn."""
    if passage.caller.priority is not None:
        return passage.caller.priority
    try:
        return read_foreign(passage.head.path, passage.body).priority
    except RadixgateError:
        return 0
