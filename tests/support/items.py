"""Items as a worker sends them, in one line."""

from collections.abc import Sequence

from radixgate.proto.generated import worker_pb2 as pb

REASONS = {"stop": pb.Finish.STOP, "length": pb.Finish.LENGTH, "abort": pb.Finish.ABORT}


def item(
    text: str = "",
    *,
    ids: Sequence[int] = (),
    choice: int = 0,
    finish: str | None = None,
    counts: tuple[int, int, int] | None = None,
    handle: int = 1,
) -> pb.Item:
    """`counts` is (prompt, cached, completion)."""
    made = pb.Item(handle=handle, choice=choice, text=text, token_ids=ids)
    if finish is not None:
        made.finish.reason = REASONS[finish]
    if counts is not None:
        prompt, cached, completion = counts
        made.counts.prompt = prompt
        made.counts.cached_device = cached
        made.counts.completion = completion
    return made
