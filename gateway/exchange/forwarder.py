"""What stands behind the front door, and makes an exchange of each request."""

from radixgate.gateway.attempt.attempt import Attempt, Downstream
from radixgate.gateway.exchange.admission import OPEN, Admission
from radixgate.gateway.exchange.client_answer import ClientAnswer
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.detour import Detour
from radixgate.gateway.exchange.exchange import Exchange
from radixgate.gateway.heads.request_head import RequestHead


class Forwarder:
    """Starts an exchange for each request: the `Generator` behind the front door."""

    def __init__(self, core: Core, detour: Detour | None = None) -> None:
        """`detour`: None if there is no way round, whatever runs."""
        self._core = core
        self._detour = detour or Detour()

    def generate(
        self,
        head: RequestHead,
        body: bytes,
        downstream: Downstream,
        admission: Admission = OPEN,
    ) -> Attempt:
        """Begin to answer; callbacks may come before this returns."""
        diversion = self._detour.by
        if diversion is not None:
            return diversion.generate(self._core, head, body, downstream, admission)
        core = self._core
        request_id = head.request_id or core.request_ids.make()
        tells_worker = admission.caller.admin
        answer = ClientAnswer(core, downstream, request_id, tells_worker=tells_worker)
        exchange = Exchange(core, answer)
        exchange.begin(head, body, admission)
        return exchange

    def told(self, head: RequestHead, client: Downstream, admission: Admission) -> Downstream:
        """The client, for the answer to a request that is not begun here."""
        return client

    def left(self, head: RequestHead, client: Downstream, admission: Admission) -> None:
        """The client of a request that was never begun has gone."""
