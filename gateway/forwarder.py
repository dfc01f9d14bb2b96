"""What stands behind the front door, and makes an exchange of each request."""

from radixgate.gateway.attempt import Attempt, Downstream
from radixgate.gateway.caller import ANYONE, Caller
from radixgate.gateway.core import Core
from radixgate.gateway.detour import Detour
from radixgate.gateway.exchange import Exchange
from radixgate.gateway.request_head import RequestHead


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
        caller: Caller = ANYONE,
        arrived_at: float | None = None,
    ) -> Attempt:
        """Begin to answer; callbacks may come before this returns. `arrived_at`: None for now."""
        diversion = self._detour.by
        if diversion is not None:
            return diversion.generate(self._core, head, body, downstream, caller, arrived_at)
        exchange = Exchange(self._core, head, body, downstream, caller)
        exchange.begin(arrived_at)
        return exchange

    def told(
        self, head: RequestHead, client: Downstream, caller: Caller, arrived_at: float | None = None
    ) -> Downstream:
        """The client, for the answer to a request that is not begun here."""
        return client

    def left(
        self, head: RequestHead, client: Downstream, caller: Caller, arrived_at: float
    ) -> None:
        """The client of a request that was never begun has gone."""
