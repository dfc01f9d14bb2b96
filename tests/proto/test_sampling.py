"""Sampling parameters: what is absent, what is zero, and what is out of range."""

import math
from collections.abc import Mapping

import pytest

from radixgate.errors import RequestError
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.sampling import MAX_CHOICES, MAX_STOPS, MAX_TOP_LOGPROBS, SamplingParams


def sampling(**given: object) -> pb.Sampling:
    wire = pb.Sampling()
    for name, value in given.items():
        if isinstance(value, Mapping):
            getattr(wire, name).update(value)
        elif isinstance(value, list):
            getattr(wire, name).extend(value)
        else:
            setattr(wire, name, value)
    return wire


def test_what_is_absent_takes_the_defaults() -> None:
    params = SamplingParams.from_wire(pb.Sampling())
    assert params == SamplingParams()
    assert params.temperature == 1.0
    assert params.top_k == -1
    assert params.repetition_penalty == 1.0
    assert params.skip_special_tokens
    absent = (params.seed, params.max_tokens, params.top_logprobs, params.logprob_start)
    assert absent == (None, None, None, None)


@pytest.mark.parametrize(
    ("name", "zero"),
    [
        ("temperature", 0.0),
        ("min_p", 0.0),
        ("seed", 0),
        ("max_tokens", 0),
        ("top_logprobs", 0),
        ("logprob_start", 0),
        ("skip_special_tokens", False),
    ],
)
def test_zero_is_not_absent(name: str, zero: float) -> None:
    params = SamplingParams.from_wire(sampling(**{name: zero}))
    assert getattr(params, name) == zero
    assert getattr(params, name) is not None


def test_everything_given_arrives() -> None:
    wire = sampling(
        temperature=0.5,
        top_p=0.75,
        top_k=7,
        min_p=0.25,
        presence_penalty=-1.5,
        frequency_penalty=1.5,
        repetition_penalty=1.25,
        logit_bias={5: -100.0},
        seed=2**63 - 1,
        n=3,
        max_tokens=9,
        min_tokens=2,
        stop=["a", "b"],
        stop_token_ids=[1, 2],
        ignore_eos=True,
        skip_special_tokens=False,
        no_stop_trim=True,
        top_logprobs=4,
        logprob_start=1,
        token_ids_logprob=[8],
    )
    assert SamplingParams.from_wire(wire) == SamplingParams(
        temperature=0.5,
        top_p=0.75,
        top_k=7,
        min_p=0.25,
        presence_penalty=-1.5,
        frequency_penalty=1.5,
        repetition_penalty=1.25,
        logit_bias={5: -100.0},
        seed=2**63 - 1,
        n=3,
        max_tokens=9,
        min_tokens=2,
        stop=("a", "b"),
        stop_token_ids=(1, 2),
        ignore_eos=True,
        skip_special_tokens=False,
        no_stop_trim=True,
        top_logprobs=4,
        logprob_start=1,
        token_ids_logprob=(8,),
    )


def test_the_wire_has_a_place_for_every_parameter_and_no_other() -> None:
    on_the_wire = {field.name for field in pb.Sampling.DESCRIPTOR.fields}
    assert on_the_wire == set(SamplingParams.__dataclass_fields__)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.0),
        ("temperature", 100.0),
        ("top_p", 1.0),
        ("top_p", 2.0**-20),
        ("top_k", 1),
        ("top_k", -1),
        ("min_p", 1.0),
        ("presence_penalty", -2.0),
        ("presence_penalty", 2.0),
        ("frequency_penalty", -2.0),
        ("frequency_penalty", 2.0),
        ("repetition_penalty", 100.0),
        ("n", 1),
        ("n", MAX_CHOICES),
        ("max_tokens", 2**31 - 1),
        ("top_logprobs", MAX_TOP_LOGPROBS),
        ("stop", ["x"] * MAX_STOPS),
        ("logit_bias", {0: -100.0, 1: 100.0}),
    ],
)
def test_the_ends_of_each_range_are_in_it(name: str, value: object) -> None:
    SamplingParams.from_wire(sampling(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 100.5),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_p", 0.0),
        ("top_p", -0.5),
        ("top_p", 1.5),
        ("top_p", math.nan),
        ("top_k", 0),
        ("top_k", -2),
        ("min_p", -0.5),
        ("min_p", 1.5),
        ("presence_penalty", -2.5),
        ("presence_penalty", 2.5),
        ("frequency_penalty", -2.5),
        ("frequency_penalty", 2.5),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", 100.5),
        ("n", 0),
        ("n", MAX_CHOICES + 1),
        ("top_logprobs", MAX_TOP_LOGPROBS + 1),
        ("stop", ["x"] * (MAX_STOPS + 1)),
        ("stop", ["x", ""]),
        ("logit_bias", {3: math.nan}),
        ("logit_bias", {3: math.inf}),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_name_of_the_field(
    name: str, value: object
) -> None:
    with pytest.raises(RequestError, match=name.replace("stop", "stop string")) as caught:
        SamplingParams.from_wire(sampling(**{name: value}))
    assert caught.value.param == name
    assert caught.value.status == 400


def test_more_tokens_at_least_than_at_most_are_refused() -> None:
    with pytest.raises(RequestError, match="min_tokens 5 is over max_tokens 4") as caught:
        SamplingParams.from_wire(sampling(min_tokens=5, max_tokens=4))
    assert caught.value.param == "min_tokens"
    assert SamplingParams.from_wire(sampling(min_tokens=4, max_tokens=4)).min_tokens == 4
    assert SamplingParams.from_wire(sampling(min_tokens=5)).max_tokens is None


@pytest.mark.parametrize(
    ("given", "greedy"),
    [
        pytest.param({}, False, id="default"),
        pytest.param({"temperature": 0.0}, True, id="temperature 0"),
        pytest.param({"top_k": 1}, True, id="top_k 1"),
        pytest.param({"top_k": 2}, False, id="top_k 2"),
    ],
)
def test_greedy_is_temperature_zero_or_one_candidate(
    given: dict[str, object], greedy: bool
) -> None:
    assert SamplingParams.from_wire(sampling(**given)).greedy is greedy
