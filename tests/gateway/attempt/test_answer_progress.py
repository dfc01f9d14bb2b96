"""Where the next worker goes on with an answer."""

import json
from array import array
from random import Random

from items import item
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext
from radixgate.proto.native import parse_generate

PROMPT = array("I", [5, 6, 7, 8])


def begun(choices: int = 1) -> AnswerProgress:
    request = parse_generate(
        {
            "input_ids": list(PROMPT),
            "return_logprob": True,
            "logprob_start_len": 1,
            "sampling_params": {"max_new_tokens": 4, "n": choices},
        }
    )
    progress = AnswerProgress(request, [PROMPT])
    progress.open(AnswerContext("r", "m", 0, lambda token: b""), Random(1))
    return progress


def scores(*tokens: int) -> pb.Item:
    entries = [pb.TokenLogprobs(token_id=token, logprob=-1.0) for token in tokens]
    return pb.Item(handle=1, input_logprobs=entries)


def test_the_prompts_logprobs_that_have_come_are_not_asked_for_again() -> None:
    progress = begun()
    ((_, _, first),) = progress.submits(lambda: "a")
    assert first.sampling.logprob_start == 1
    progress.take(0, scores(6, 7), 0)
    ((_, _, second),) = progress.submits(lambda: "b")
    assert second.sampling.logprob_start == 3
    progress.take(0, scores(8), 0)
    progress.take(0, item("x", ids=[9], finish="length", counts=(4, 0, 1)), 0)
    assert progress.complete
    assert progress.renderer.end().count(b"[-1.0,") == 3


def test_choices_that_go_on_alone_have_the_numbers_they_had() -> None:
    progress = begun(choices=2)
    progress.take(0, scores(6, 7, 8), 0)
    progress.take(0, item("x", ids=[9], choice=1), 0)
    submits = [submit for _, _, submit in progress.submits(lambda: "a")]
    assert [submit.first_choice for submit in submits] == [0, 1]
    assert [len(submit.prior_output_ids) // 4 for submit in submits] == [0, 1]
    assert [submit.sampling.logprob_start for submit in submits] == [4, 4]


def test_prompts_are_submitted_by_the_names_that_the_answer_tells() -> None:
    request = parse_generate({"input_ids": [list(PROMPT), list(PROMPT)]})
    progress = AnswerProgress(request, [PROMPT, PROMPT])
    context = AnswerContext("r", "m", 0, lambda token: b"", rids=("x", "y"))
    progress.open(context, Random(1))
    first = progress.submits(lambda: "fresh")
    assert [(rid, submit.rid) for _, rid, submit in first] == [("x", "x"), ("y", "y")]
    for prompt in (0, 1):
        progress.take(prompt, item("z", ids=[9], counts=(4, 0, 1)), 0)
    # The worker that had them may be asked again before it has let go of them.
    progress.open(context, Random(1))
    again = progress.submits(lambda: "fresh")
    assert [(rid, submit.rid) for _, rid, submit in again] == [("x", "fresh"), ("y", "fresh")]
    told = json.loads(progress.end_aborted())
    assert [one["meta_info"]["id"] for one in told] == ["x", "y"]


def test_what_is_ended_by_order_keeps_what_had_come() -> None:
    progress = begun(choices=2)
    progress.take(0, item("so far", ids=[7, 8], counts=(4, 0, 2)), 0)
    progress.take(0, item("whole", ids=[9], choice=1, finish="stop", counts=(4, 0, 1)), 0)
    ended = json.loads(progress.end_aborted())
    told = [(one["text"], one["meta_info"]["finish_reason"]["type"]) for one in ended]
    assert told == [("so far", "abort"), ("whole", "stop")]
    assert progress.complete
