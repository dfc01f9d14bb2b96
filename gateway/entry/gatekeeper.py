"""Between the front door and the core: who asks, and may it ask now?"""

from dataclasses import dataclass
from functools import partial

from radixgate.clock import Clock
from radixgate.errors import RadixgateError, TooManyRequests
from radixgate.gateway.asking.large_bodies import priority_of
from radixgate.gateway.attempt.attempt import AnswerCounts, Attempt, Client
from radixgate.gateway.attempt.caller import Caller
from radixgate.gateway.entry.generator import Generator
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.entry.passage import Passage
from radixgate.gateway.entry.rate_limits import RateLimits
from radixgate.gateway.entry.waiting_line import WaitingLine
from radixgate.gateway.exchange.admission import Admission
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.forwarder import Forwarder
from radixgate.gateway.exchange.unbegun import REFUSED, answer_or_cut, end_unbegun, refuse
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.gateway.settings.limits_config import LimitsConfig


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


STRANGER = Admission(Caller())


class Gatekeeper:
    """Lets requests with a known key through, as many as may; the others cost no worker anything.

    The `Gate` of those that are begun, and the `Desk` of those that must wait for a place.
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

    def generate(self, head: RequestHead, body: bytes, client: Client) -> Attempt:
        try:
            caller = self._keys.caller(head.authorization)
        except RadixgateError as error:
            wrong = FinalOutcome.CLIENT_ERROR
            refuse(
                self._core, head, error, self._forwarder.turned_away(head, client, STRANGER, wrong)
            )
            return REFUSED
        line, charged = self._line, 0.0
        arrived_at = self._core.clock.now()
        placed = line is None or line.enter()
        try:
            # Before the rates: a request that finds no room is not charged for.
            if line is not None and not placed:
                line.check_room()
            if self._rates is not None:
                charged = self._rates.take(caller.tenant, len(body), arrived_at)
        except TooManyRequests as error:
            if line is not None and placed:
                line.leave()
            self._refuse(head, error, client, Admission(caller))
            return REFUSED
        admission = Admission(caller, arrived_at, self, charged)
        if line is None or placed:
            return self._forwarder.generate(head, body, client, admission)
        passage = Passage(self, head, body, client, admission)
        passage.priority = _priority(passage)
        core = self._core
        passage.wait(line, core.deadlines, core.held, arrived_at + self._queue_timeout_s)
        return passage

    def left(self, admission: Admission, counts: AnswerCounts | None) -> None:
        if self._line is not None:
            self._line.leave()
        if self._rates is not None:
            self._rates.settle(admission.caller.tenant, admission.charged, counts)

    # ------------------------------------------------------------ from a passage

    def begin(self, passage: Passage) -> Attempt:
        head, client = passage.head, passage.client
        return self._forwarder.generate(head, passage.body, client, passage.admission)

    def turn_away(self, passage: Passage, error: RadixgateError | None) -> None:
        head, client, admission = passage.head, passage.client, passage.admission
        if error is None:
            self._forwarder.left(head, client, admission)
        else:
            answer_or_cut(partial(self._refuse, head, error, client, admission), client)

    def abort(self, passage: Passage) -> None:
        head, client, admission = passage.head, passage.client, passage.admission
        counted = partial(self._forwarder.turned_away, head, client, admission)
        end = partial(end_unbegun, self._core, head, passage.body, counted)
        answer_or_cut(end, client)

    def _refuse(
        self, head: RequestHead, error: RadixgateError, client: Client, admission: Admission
    ) -> None:
        told = self._forwarder.turned_away(head, client, admission, FinalOutcome.REJECTED)
        refuse(self._core, head, error, told)


def _priority(passage: Passage) -> int:
    """The key's, else the request's own; a body that cannot be read is refused in its turn."""
    if passage.admission.caller.priority is not None:
        return passage.admission.caller.priority
    return priority_of(passage.body)
