"""The end of a request that was aborted by order before it was begun."""

from radixgate.gateway.attempt.aborted_answer import aborted_answer
from radixgate.gateway.attempt.attempt import Downstream
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome


def end_unbegun(core: Core, head: RequestHead, body: bytes, client: Downstream) -> None:
    """Answer a request that was never begun as aborted, and count it."""
    request_id = head.request_id or core.request_ids.make()
    answer = aborted_answer(head.path, body, request_id)
    good = answer.status < 400
    core.metrics.turned_away(FinalOutcome.OK if good else FinalOutcome.CLIENT_ERROR)
    size = b"%d" % len(answer.rest)
    headers = [(b"content-type", answer.content_type), (b"content-length", size)]
    client.on_head(answer.status, headers + core.own_headers.of(request_id))
    client.on_body(answer.rest)
    client.on_end(None)
