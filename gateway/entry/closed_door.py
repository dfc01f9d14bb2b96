"""Who answers generations that come when the gateway is about to end: another one may do."""

from radixgate.errors import NoWorkerAvailable
from radixgate.gateway.attempt.attempt import Attempt, Client
from radixgate.gateway.entry.gatekeeper import STRANGER
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.forwarder import Forwarder
from radixgate.gateway.exchange.unbegun import REFUSED, refuse
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome


class ClosedDoor:
    """A `Generator` that begins nothing; nobody is asked who they are."""

    def __init__(self, forwarder: Forwarder, core: Core) -> None:
        self._forwarder = forwarder
        self._core = core

    def generate(self, head: RequestHead, body: bytes, client: Client) -> Attempt:
        error = NoWorkerAvailable("this gateway is about to end and begins nothing new")
        told = self._forwarder.turned_away(head, client, STRANGER, FinalOutcome.REJECTED)
        refuse(self._core, head, error, told)
        return REFUSED
