"""Who answers generations that come when the gateway is about to end: another one may do."""

from radixgate.errors import NoWorkerAvailable
from radixgate.gateway.attempt.attempt import Attempt, Downstream
from radixgate.gateway.entry.gatekeeper import REFUSED
from radixgate.gateway.heads import http_answer
from radixgate.gateway.heads.own_headers import OwnHeaders
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome, GatewayMetrics


class ClosedDoor:
    """A `Generator` that begins nothing, and counts what it refuses."""

    def __init__(self, metrics: GatewayMetrics, own_headers: OwnHeaders) -> None:
        self._metrics = metrics
        self._own_headers = own_headers

    def generate(self, head: RequestHead, body: bytes, downstream: Downstream) -> Attempt:
        self._metrics.turned_away(FinalOutcome.REJECTED)
        error = NoWorkerAvailable("this gateway is about to end and begins nothing new")
        status, headers, answer = http_answer.error_answer(error)
        downstream.on_head(status, headers + self._own_headers.of(head.request_id))
        downstream.on_body(answer)
        downstream.on_end(None)
        return REFUSED
