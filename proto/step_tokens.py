"""Items that bring one token with its text and nothing else, as columns: cheap to read."""

from radixgate.proto.generated import worker_pb2 as pb


def with_tokens(batch: pb.StepBatch) -> pb.StepBatch:
    """The batch with such items in `tokens`, as far as the order of each handle's outputs allows.

    O(items), one or two microseconds each; the batch itself if there are none.
    """
    handles: list[int] = []
    token_ids: list[int] = []
    texts: list[str] = []
    items: list[pb.Item] = []
    behind: set[int] = set()  # `items` come after `tokens`: what follows one of them stays one
    for item in batch.items:
        handle, ids = item.handle, item.token_ids
        if len(ids) != 1 or handle in behind or not _brings_nothing_else(item):
            behind.add(handle)
            items.append(item)
            continue
        handles.append(handle)
        token_ids.append(ids[0])
        texts.append(item.text)
    if not handles:
        return batch
    tokens = pb.Tokens(handles=handles, token_ids=token_ids, texts=texts)
    return pb.StepBatch(step=batch.step, items=items, refused=batch.refused, tokens=tokens)


def _brings_nothing_else(item: pb.Item) -> bool:
    return not (
        item.choice
        or item.HasField("counts")
        or item.HasField("finish")
        or item.logprobs
        or item.input_logprobs
        or item.weight_version
    )
