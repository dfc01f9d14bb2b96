"""What stands behind the front door, and makes an exchange of each request."""

from radixgate.gateway.attempt.attempt import Attempt, Client
from radixgate.gateway.exchange.admission import OPEN, Admission
from radixgate.gateway.exchange.client_answer import ClientAnswer
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.detour import Detour
from radixgate.gateway.exchange.exchange import Exchange
from radixgate.gateway.exchange.unbegun import not_begun
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome


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
        client: Client,
        admission: Admission = OPEN,
    ) -> Attempt:
        """Begin to answer; callbacks may come before this returns. Raises nothing."""
        core = self._core
        try:
            diversion = self._detour.by
            if diversion is not None:
                return diversion.generate(core, head, body, client, admission)
            request_id = head.request_id or core.request_ids.make()
            answer = ClientAnswer(core, client, request_id, admission)
        except Exception:
            return not_begun(core, head, client, admission)
        exchange = Exchange(core, answer, head, body, admission)
        try:
            exchange.begin()
        except Exception:
            exchange.fail_inside()
        return exchange

    def turned_away(
        self, head: RequestHead, client: Client, admission: Admission, outcome: FinalOutcome
    ) -> Client:
        """Count a request that is not begun, and say who is to be given its answer."""
        self._core.turned_away(outcome)
        return client

    def left(self, head: RequestHead, client: Client, admission: Admission) -> None:
        """Count a request that was never begun and whose client has gone."""
        self._core.turned_away(FinalOutcome.CLIENT_DISCONNECT)
