"""The limit on open files goes as far up as it may, and no further."""

import resource

import pytest

from radixgate.open_files import raise_limit


def limit_is(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> list[tuple[int, int]]:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    return asked


def test_the_soft_limit_becomes_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = limit_is(monkeypatch, 1024, 65536)
    assert raise_limit() == 65536
    assert asked == [(65536, 65536)]


def test_a_limit_that_is_as_high_already_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = limit_is(monkeypatch, 65536, 65536)
    assert raise_limit() == 65536
    assert asked == []


def test_a_system_that_refuses_keeps_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_is(monkeypatch, 1024, 65536)

    def refuse(which: int, limits: tuple[int, int]) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_limit() == 1024
