"""What the workers are told of a request: the same for every attempt."""

from radixgate.gateway.asking import Question
from radixgate.gateway.attempt import FrontRequest
from radixgate.gateway.request_head import RequestHead


def to_workers(
    head: RequestHead,
    body: bytes,
    question: Question,
    request_id: str,
    *,
    passes_authorization: bool,
) -> FrontRequest:
    """`passes_authorization`: the client's key is for the workers, as the gateway has none."""
    given = head.authorization if passes_authorization else None
    return FrontRequest(
        method=head.method,
        path=head.path,
        query=head.query,
        forwarded=head.forwarded,
        authorization=b"" if given is None else b"authorization: %b\r\n" % given,
        body=body,
        request_id=request_id,
        generation=question.generation,
        progress=question.progress(),
    )
