"""The ends of requests that were never begun: each is counted once, and answered once."""

import logging
from collections.abc import Callable
from functools import partial

from radixgate.errors import InternalFault, RadixgateError
from radixgate.gateway.attempt.aborted_answer import aborted_answer
from radixgate.gateway.attempt.attempt import AnswerCounts, Attempt, Downstream
from radixgate.gateway.exchange.admission import Admission
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.fault_net import works
from radixgate.gateway.heads import http_answer
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome

_log = logging.getLogger(__name__)


class Refusal:
    """An `Attempt` that has ended already."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def delivered(self) -> AnswerCounts | None:
        return None

    def ends_as(self, error: RadixgateError) -> RadixgateError:
        return error

    def cancel(self) -> None: ...


REFUSED = Refusal()


def refuse(core: Core, head: RequestHead, error: RadixgateError, client: Downstream) -> None:
    """Answer with an error."""
    status, headers, body = http_answer.error_answer(error)
    client.on_head(status, headers + core.own_headers.of(head.request_id))
    client.on_body(body)
    client.on_end(None)


def end_unbegun(
    core: Core, head: RequestHead, body: bytes, counted: Callable[[FinalOutcome], Downstream]
) -> None:
    """Answer as aborted by order. `counted` counts it, and says who is to be given the answer."""
    request_id = head.request_id or core.request_ids.make()
    answer = aborted_answer(head.path, body, request_id)
    client = counted(FinalOutcome.OK if answer.status < 400 else FinalOutcome.CLIENT_ERROR)
    size = b"%d" % len(answer.rest)
    headers = [(b"content-type", answer.content_type), (b"content-length", size)]
    client.on_head(answer.status, headers + core.own_headers.of(request_id))
    client.on_body(answer.rest)
    client.on_end(None)


def answer_or_cut(answer: Callable[[], None], client: Downstream) -> None:
    """For who answers where nobody waits for it to fail: the client is cut off then. Raises
    nothing."""
    if not works(answer):
        works(partial(client.on_failure, InternalFault()))


def not_begun(core: Core, head: RequestHead, client: Downstream, admission: Admission) -> Attempt:
    """Called where a fault of ours is caught, before the request is in flight. Raises nothing."""
    _log.exception("a request could not be begun")
    error = InternalFault()
    works(partial(core.turned_away, FinalOutcome.UPSTREAM_ERROR))
    works(partial(admission.over, None, REFUSED))
    answer_or_cut(partial(refuse, core, head, error, client), client)
    return REFUSED
