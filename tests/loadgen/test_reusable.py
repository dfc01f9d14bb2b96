"""What a schedule's prompts share, in every form of prompt."""

import pytest

from radixgate.loadgen.prompts import ChatPrompt, IdsPrompt, SentPrompt, TextPrompt
from radixgate.loadgen.reusable import with_reusable
from radixgate.loadgen.schedule import PlannedPrompt, plan
from request_records import record


def shares(*prompts: SentPrompt, times_s: list[float] | None = None) -> list[float | None]:
    schedule = plan(
        [PlannedPrompt(prompt, 4, 1) for prompt in prompts], times_s or [0.0] * len(prompts)
    )
    records = [record((1.0, 1), index=index) for index in range(len(prompts))]
    return [one.reusable_share for one in with_reusable(records, schedule)]


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        pytest.param(TextPrompt("abcd"), TextPrompt("abxy"), 0.5, id="text"),
        pytest.param(IdsPrompt((7, 8, 9, 1)), IdsPrompt((7, 8, 9, 2)), 0.75, id="ids"),
        pytest.param(
            ChatPrompt((("user", "ab"),)), ChatPrompt((("user", "ac"),)), 6 / 7, id="messages"
        ),
        pytest.param(TextPrompt("abcd"), IdsPrompt((1, 2)), 0.0, id="text-and-ids-never-meet"),
    ],
)
def test_the_second_finds_what_the_first_brought(
    first: SentPrompt, second: SentPrompt, share: float
) -> None:
    assert shares(first, second) == [0.0, pytest.approx(share)]


def test_who_is_due_first_brings_it() -> None:
    found = shares(TextPrompt("abcd"), TextPrompt("abcd"), times_s=[5.0, 1.0])
    assert found == [0.75, 0.0]
