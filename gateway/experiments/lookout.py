"""Where requests pass while experiments run."""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from radixgate.clock import Clock
from radixgate.gateway.attempt.attempt import Attempt, Client
from radixgate.gateway.choice.told_choice import ToldChoice
from radixgate.gateway.exchange.admission import Admission
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.forwarder import Forwarder
from radixgate.gateway.experiments.acting import Acting
from radixgate.gateway.experiments.hold import Hold
from radixgate.gateway.experiments.shadow import Shadow
from radixgate.gateway.experiments.watched_request import WatchedRequest
from radixgate.gateway.heads.request_head import RequestHead


class Lookout:
    """A `Diversion`, and the `Watcher` of every request that takes it."""

    def __init__(
        self,
        clock: Clock,
        soon: Callable[[Callable[[], None]], object],
        step: Callable[[], None],
    ) -> None:
        """`step` is called when a request has ended: that may be what a switch waits for."""
        self.hold = Hold(clock, soon)
        self.acting: Acting | None = None
        self.shadows: tuple[Shadow, ...] = ()
        self._step = step

    # ------------------------------------------------------------ from the forwarder

    def generate(
        self,
        core: Core,
        head: RequestHead,
        body: bytes,
        client: Client,
        admission: Admission,
    ) -> Attempt:
        if admission.arrived_at is None:
            admission = msgspec.structs.replace(admission, arrived_at=core.clock.now())
        request = WatchedRequest(self, core, head, body, client, admission)
        if self.hold.take(request):
            core.held.enter(request)
        else:
            request.go(0.0)
        return request

    # ------------------------------------------------------------ from a request

    def begin(self, request: WatchedRequest) -> Attempt:
        if self.acting is not None:
            self.acting.begun(request)
        core = replace(request.core, choice=ToldChoice(request.core.choice, request))
        # What it has to give back the request itself does, as it may end before it is begun.
        admission = msgspec.structs.replace(request.admission, gate=None)
        return Forwarder(core).generate(request.head, request.body, request, admission)

    def dispatched(self, request: WatchedRequest) -> None:
        assert request.ask is not None
        assert request.lease is not None
        if self.acting is not None:
            self.acting.dispatched(request)
        for shadow in self.shadows:
            shade = shadow.placed(request.ask, request.lease)
            if shade is not None:
                request.shades.append(shade)

    def first_token(self, request: WatchedRequest) -> None:
        for shade in request.shades:
            shade.first_token()

    def over(self, request: WatchedRequest) -> None:
        self.hold.leave(request)
        for shade in request.shades:
            shade.over()
        if self.acting is not None:
            self.acting.ended(request)
            self._step()

    def shown_policy(self, request: WatchedRequest) -> bytes | None:
        label, acting = request.label, self.acting
        if label is None or acting is None:
            return None
        return acting.logbook.declaration.arms[label.arm].policy.encode()
