"""Decisions, noted with what they rested on and how they went."""

import pytest

from books import ids_of
from decided import RUN, SEED, NotedFleet
from radixgate.fleet.ask import Ask
from radixgate.fleet.decision_lines import (
    DecisionLine,
    OutcomeLine,
    StartLine,
    decode_line,
    packed,
    unpacked,
)
from radixgate.fleet.lease import Outcome
from radixgate.fleet.rule import Rule


def decision(noted: NotedFleet, number: int) -> DecisionLine:
    line = noted.lines()[number]
    assert isinstance(line, DecisionLine)
    return line


def test_it_begins_with_who_decides() -> None:
    (start,) = NotedFleet("kv_cost").lines()
    assert isinstance(start, StartLine)
    assert (start.policy, start.seed, start.version) == ("kv_cost", SEED, 1)
    assert start.settings["sticky"]["sticky_sessions"] == 65_536


def test_a_decision_is_noted_with_what_each_held_and_its_load() -> None:
    noted = NotedFleet("kv_cost", names=("a", "b"))
    noted.books.warm("abcdef", "b")
    noted.lease("zzz")
    noted.lease("abcdefgh")
    line = decision(noted, 2)
    columns = line.candidates
    held = dict(zip(columns.worker, columns.cached_tokens, strict=True))
    load = dict(zip(columns.worker, columns.requests_in_flight, strict=True))
    assert held == {"a": 0, "b": 6}
    assert sum(load.values()) == 1
    assert (line.n, line.policy, line.model, line.prompt_tokens) == (2, "kv_cost", "toy", 8)
    assert (line.chosen, line.reason) == ("b", "hit")
    assert min(columns.score) == columns.score[columns.worker.index("b")]
    assert list(unpacked(line.blocks)) == list(ids_of("abcdefgh"))
    assert line.block_tokens == 1
    assert line.at == pytest.approx(1e9 + noted.books.clock.now())


def test_what_is_noted_stays_as_it_was() -> None:
    noted = NotedFleet("least_load", names=("a",))
    noted.lease("one")
    noted.lease("two")
    noted.lease("three")
    assert [decision(noted, n).candidates.requests_in_flight for n in (1, 2, 3)] == [[0], [1], [2]]


def test_how_it_went_is_told_from_the_decision_on() -> None:
    noted = NotedFleet("kv_cost")
    lease = noted.lease("abc")
    noted.books.clock.advance(0.5)
    lease.first_output()
    noted.books.clock.advance(1.0)
    lease.first_output()
    lease.close(Outcome.OK, 2)
    lease.close(Outcome.FAILED)
    outcomes = [line for line in noted.lines() if isinstance(line, OutcomeLine)]
    assert len(outcomes) == 1
    (told,) = outcomes
    assert (told.n, told.outcome, told.cached_tokens) == (1, "ok", 2)
    assert [told.ttft_s, told.e2e_s] == pytest.approx([0.5, 1.5])
    noted.books.fleet.check()
    assert sum(view.in_flight for view in noted.books.fleet.workers()) == 0


def test_what_gave_no_output_has_no_time_to_it() -> None:
    noted = NotedFleet("kv_cost")
    noted.lease("abc").close(Outcome.FAILED)
    told = noted.lines()[-1]
    assert isinstance(told, OutcomeLine)
    assert (told.outcome, told.ttft_s, told.cached_tokens) == ("failed", None, None)


def test_neither_prompts_nor_sessions_names_are_in_it() -> None:
    noted = NotedFleet("kv_cost")
    secret = Ask("toy", 3, {}, session="jane@example.org", fingerprint=7)
    other = Ask("toy", 3, {}, session="joe@example.org", fingerprint=7)
    for ask in (secret, other, secret):
        noted.books.fleet.lease(ask)
    sessions = [decision(noted, n).session for n in (1, 2, 3)]
    assert sessions[0] == sessions[2] != sessions[1]
    assert b"example.org" not in b"".join(note.encode() for note in noted.notes)
    assert all(RUN.hex() not in note.encode().decode() for note in noted.notes)


def test_another_policy_begins_anew_and_a_new_file_goes_on() -> None:
    noted = NotedFleet("kv_cost")
    noted.journal.begin(Rule("random", {}, 99))
    noted.lease("abc")
    start, line = noted.lines()[1:]
    assert isinstance(start, StartLine)
    assert (start.policy, start.seed) == ("random", 99)
    assert isinstance(line, DecisionLine)
    assert line.policy == "random"
    assert (noted.journal.heading().policy, noted.journal.heading().seed) == ("random", None)


def test_a_session_s_name_is_told_in_a_word_of_this_run_only() -> None:
    def words(run: bytes, *sessions: str) -> list[str | None]:
        noted = NotedFleet("kv_cost", run=run)
        for session in sessions:
            noted.books.fleet.lease(Ask("toy", 3, {}, session=session, fingerprint=7))
        return [line.session for line in noted.lines() if isinstance(line, DecisionLine)]

    here, elsewhere = words(RUN, "ann", "bob", "ann", ""), words(RUN[::-1], "ann")
    assert here[0] == here[2] != here[1]
    assert here[3] is None
    assert elsewhere[0] not in here
    assert not any("ann" in word for word in (*here, *elsewhere) if word)


def test_a_chain_of_ids_packs_and_unpacks() -> None:
    ids = [0, 1, 2**63, 2**64 - 1]
    assert list(unpacked(packed(ids))) == ids
    assert packed(()) == ""
    with pytest.raises(ValueError, match="Only base64 data"):
        unpacked("!" + packed(ids))


def test_a_note_says_about_how_much_it_holds() -> None:
    noted = NotedFleet("kv_cost")
    noted.lease("x" * 10)
    noted.lease("x" * 10_010)
    small, large = noted.notes[1:3]
    assert large.size - small.size == 80_000
    many = NotedFleet("kv_cost", names=[f"w{number}" for number in range(103)])
    many.lease("x" * 10)
    assert many.notes[1].size - small.size == 100 * 300


def test_lines_are_read_as_written() -> None:
    noted = NotedFleet("cache_aware")
    noted.busy_day(20)
    for note in noted.notes:
        assert decode_line(note.encode()) == note.line()
