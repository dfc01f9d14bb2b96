"""Between the front door and the core: who asks, and may it ask now?"""

from radixgate.errors import RadixgateError
from radixgate.gateway import http_answer
from radixgate.gateway.attempt import Attempt, Downstream
from radixgate.gateway.core import Core
from radixgate.gateway.exchange import Forwarder
from radixgate.gateway.http_front import Generator
from radixgate.gateway.key_ring import KeyRing
from radixgate.gateway.metrics import FinalOutcome
from radixgate.gateway.request_head import RequestHead


def generator_of(forwarder: Forwarder, core: Core, keys: KeyRing) -> Generator:
    """What stands behind the front door; the forwarder itself where nothing is asked first."""
    return Gatekeeper(forwarder, core, keys) if keys.used else forwarder


class Refusal:
    """An `Attempt` that has ended already."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def cancel(self) -> None: ...


class Gatekeeper:
    """Lets requests with a known key through; the others cost no worker anything."""

    def __init__(self, forwarder: Forwarder, core: Core, keys: KeyRing) -> None:
        self._forwarder = forwarder
        self._keys = keys
        self._core = core

    def generate(self, head: RequestHead, body: bytes, downstream: Downstream) -> Attempt:
        given = head.authorization
        try:
            caller = self._keys.caller(None if given is None else given.decode("latin-1"))
        except RadixgateError as error:
            self._refuse(head, error, downstream, FinalOutcome.CLIENT_ERROR)
            return Refusal()
        return self._forwarder.generate(head, body, downstream, caller)

    def _refuse(
        self,
        head: RequestHead,
        error: RadixgateError,
        downstream: Downstream,
        outcome: FinalOutcome,
    ) -> None:
        self._core.metrics.turned_away(outcome)
        status, headers, body = http_answer.error_answer(error)
        request_id = head.request_id or self._core.request_ids.make()
        downstream.on_head(status, [*headers, (b"x-request-id", request_id.encode())])
        downstream.on_body(body)
        downstream.on_end(None)
