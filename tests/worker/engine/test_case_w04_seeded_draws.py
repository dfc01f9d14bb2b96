"""W04: a draw is a function of seed, choice and position, whoever else is in the batch."""

from collections.abc import Callable

import pytest

from asking import Asked
from small_engine import Ear, SmallEngine

PROMPT = [3, 1, 4, 1, 5, 9, 2]
SEEDED = Asked(temperature=0.9, max_tokens=24, seed=42)
UNSEEDED = Asked(temperature=0.9, max_tokens=24)


def drawn(engine: SmallEngine, prepare: Callable[[SmallEngine, Ear], None]) -> list[int]:
    """The tokens of handle 1 when `prepare` has set the scene."""
    ear = Ear()
    prepare(engine, ear)
    engine.run()
    assert ear.finish(1) == "LENGTH"
    return ear.ids(1)


def alone(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 1, PROMPT, **SEEDED)


def beside_an_unseeded_one(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 2, PROMPT, **UNSEEDED)
    engine.submit(ear, 1, PROMPT, **SEEDED)


def beside_three_seeded_ones(engine: SmallEngine, ear: Ear) -> None:
    for handle, seed in ((7, 7), (8, 8), (9, 9)):
        engine.submit(ear, handle, PROMPT, **(SEEDED | Asked(seed=seed)))
    engine.submit(ear, 1, PROMPT, **SEEDED)


def before_five_that_come_later(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 1, PROMPT, **SEEDED)
    for _ in range(3):
        engine.step()
    for handle in range(2, 7):
        engine.submit(ear, handle, [handle], **UNSEEDED)


def beside_its_copy(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 1, PROMPT, **SEEDED)
    engine.submit(ear, 2, PROMPT, **SEEDED)
    engine.run()
    assert ear.ids(1) == ear.ids(2)


def retracted_on_the_way(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 2, [2] * 8, max_tokens=60)
    for _ in range(12):
        engine.step()
    engine.submit(ear, 1, PROMPT, **SEEDED)
    engine.run()
    assert ear.counts(1).retractions > 0


@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(scene, id=scene.__name__)
        for scene in (
            alone,
            beside_an_unseeded_one,
            beside_three_seeded_ones,
            before_five_that_come_later,
            beside_its_copy,
            retracted_on_the_way,
        )
    ],
)
def test_w04_the_same_seed_gives_the_same_tokens(
    scene: Callable[[SmallEngine, Ear], None],
) -> None:
    expected = drawn(SmallEngine(), alone)
    pages = 18 if scene is retracted_on_the_way else 64
    engine = SmallEngine(pages=pages, random_seed=None, schedule_conservativeness=0.0)
    assert drawn(engine, scene) == expected


def test_w04_one_choice_of_several_goes_on_elsewhere_by_its_number() -> None:
    asked = Asked(temperature=1.0, seed=11, max_tokens=12)
    whole = SmallEngine().answer([1, 2, 3], **(asked | Asked(n=3)))
    for choice in range(3):
        ids = whole.ids(1, choice)
        goes_on = asked | Asked(prior=ids[:5], first_choice=choice)
        rest = SmallEngine().answer([1, 2, 3], **goes_on)
        assert rest.ids(1, choice) == ids[5:]
    beyond = SmallEngine().answer([1], **(asked | Asked(n=4, first_choice=125)))
    assert (beyond.refused[1].status, beyond.refused[1].field) == (400, "first_choice")


def test_w04_the_choices_of_a_seeded_request_differ_and_repeat() -> None:
    engine = SmallEngine()
    asked = SEEDED | Asked(n=4)
    runs = [
        [ear.ids(1, choice) for choice in range(4)]
        for ear in (engine.answer(PROMPT, **asked), engine.answer(PROMPT, **asked))
    ]
    assert runs[0] == runs[1]
    assert len({tuple(ids) for ids in runs[0]}) == 4
    assert runs[0][0] == drawn(engine, alone)


def test_w04_without_a_seed_a_repetition_differs() -> None:
    engine = SmallEngine(random_seed=None)
    assert engine.answer(PROMPT, **UNSEEDED).ids(1) != engine.answer(PROMPT, **UNSEEDED).ids(1)


@pytest.mark.parametrize("cut", [1, 7, 23])
def test_w04_a_request_goes_on_elsewhere_with_the_draws_it_would_have_had(cut: int) -> None:
    penalties = Asked(frequency_penalty=0.8, presence_penalty=0.3, repetition_penalty=1.2)
    asked = SEEDED | penalties
    whole = SmallEngine().answer(PROMPT, **asked).ids(1)
    rest = SmallEngine().answer(PROMPT, **(asked | Asked(prior=whole[:cut])))
    assert rest.ids(1) == whole[cut:]
    assert rest.counts(1).completion == 24 - cut
