"""What the workers are told of a request: the same for every attempt."""

from radixgate.gateway.asking.question import Question
from radixgate.gateway.attempt.attempt import FrontRequest
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.heads.request_head import RequestHead


def to_workers(
    head: RequestHead, body: bytes, question: Question, request_id: str, core: Core
) -> FrontRequest:
    """`body`: as they are to see it."""
    given = head.authorization if core.passes_authorization else None
    return FrontRequest(
        line=head.line,
        forwarded=head.forwarded,
        authorization=b"" if given is None else b"authorization: %b\r\n" % given,
        body=body,
        request_id=request_id,
        generation=question.generation,
        progress=None if question.generation is None else question.progress(),
    )
