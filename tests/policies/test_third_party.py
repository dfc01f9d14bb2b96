"""Policies of other packages: the one in the docs, and those that go wrong."""

import json
import random
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest

from clocks import FakeClock
from columns import PROMPT, columns
from radixgate.cli import main
from radixgate.errors import ConfigError, NoWorkerAvailable, RadixgateError
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.registry import make_policy, policy_names
from radixgate.policies.third_party import GROUP, MOST_REASONS, Checked

PAGE = Path(__file__).parents[2] / "docs/policies.md"
SECTION = PAGE.read_text().partition("## A policy of your own")[2]
(MODULE,) = re.findall(r"^```python\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
(PROJECT,) = re.findall(r"^```toml\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
OFFERED: dict[str, str] = tomllib.loads(PROJECT)["project"]["entry-points"][GROUP]

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package where Python finds it, with its entry points."""

    def put(package: str, names: dict[str, str], group: str = GROUP, **modules: str) -> None:
        root = tmp_path / package
        info = root / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for name, text in modules.items():
            (root / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(root))

    return put


def test_the_one_in_the_docs_is_short_and_chooses(install: Install) -> None:
    assert len([line for line in MODULE.splitlines() if line.strip()]) <= 20
    install("my-package", OFFERED, my_policy=MODULE)
    assert "fewest_tokens" in policy_names()
    policy = make_policy("fewest_tokens", FakeClock(), random.Random(1))
    choice = policy.choose(PROMPT, columns(3, uncached=[5, 2, 9]))
    assert (choice.index, choice.branch) == (1, "fewest_tokens")
    assert list(choice.explain()) == [5.0, 2.0, 9.0]
    with pytest.raises(NoWorkerAvailable):
        policy.choose(PROMPT, columns(0))
    chosen = {policy.choose(PROMPT, columns(3)).index for _ in range(50)}
    assert chosen == {0, 1, 2}


def test_the_simulator_takes_it_by_name(install: Install, tmp_path: Path) -> None:
    install("my-package", OFFERED, my_policy=MODULE)
    trace = tmp_path / "trace.jsonl"
    rows = [
        {"timestamp": n * 100, "input_length": 1_000, "output_length": 5, "hash_ids": [1, n]}
        for n in range(20)
    ]
    trace.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "out.json"
    words = ["--trace", str(trace), "--workers", "2", "--policies", "fewest_tokens"]
    assert main(["simulate", *words, "--capacity", "5", "--json", str(out)]) == 0
    assert json.loads(out.read_text())["results"]["fewest_tokens"]["requests"] > 0


RAISES = "raise ImportError('no such engine')"
NEEDS_MORE = "class P:\n    def __init__(self, clock, rng, table): ...\n"
NO_CHOICE = "class P:\n    def __init__(self, clock, rng): ...\n"
NOBODY = (
    "from radixgate.policies.base import Choice\n"
    "class P:\n"
    "    def __init__(self, clock, rng): ...\n"
    "    def choose(self, request, candidates): return Choice(7, 'x', list)\n"
)
LOCKED = NOBODY.replace("): ...", "): self.lock = __import__('threading').Lock()")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(RAISES, "cannot be loaded: ImportError: no such engine", id="import"),
        pytest.param("", "cannot be loaded: AttributeError", id="no-such-attribute"),
        pytest.param(NEEDS_MORE, r"cannot be made by \(clock, rng\): TypeError", id="arguments"),
        pytest.param(NO_CHOICE, "does not choose among two idle workers: Attribute", id="choose"),
        pytest.param(NOBODY, "the policy 'sad' chose candidate 7 of 2", id="nobody"),
        pytest.param(NOBODY.replace("7", "2"), "chose candidate 2 of 2", id="one-too-far"),
        pytest.param(LOCKED, "cannot be copied", id="one-of-a-kind"),
    ],
)
def test_what_goes_wrong_is_said_with_the_package_at_the_start(
    install: Install, text: str, said: str, request: pytest.FixtureRequest
) -> None:
    module = "broken_" + request.node.name.partition("[")[2].rstrip("]").replace("-", "_")
    install("sad-package", {"sad": f"{module}:P"}, **{module: text})
    with pytest.raises(ConfigError, match=said) as caught:
        make_policy("sad", FakeClock(), random.Random(1))
    assert f"the policy 'sad' of sad-package ({module}:P)" in caught.value.message


CURIOUS = """
from radixgate.policies.base import Choice

class P:
    def __init__(self, clock, rng):
        self.since, self.draw = clock.now(), rng.random()

    def choose(self, request, candidates):
        told = (candidates.running, candidates.waiting, candidates.queued_uncached_tokens)
        told += (candidates.queued_elsewhere, candidates.kv_share_used)
        told += (candidates.prefill_tokens_per_s,)
        ours = (candidates.requests_in_flight, candidates.uncached_tokens_in_flight)
        if all(worker is not None for column in told for worker in column):
            assert [len({*column}) for column in (*told, *ours)] == [2] * 8
            return Choice(0, "told", list)
        assert [len(column) for column in told] == [len(candidates)] * 6
        assert [sum(column) for column in (*ours, candidates.read_cached_tokens())] == [0, 0, 0]
        assert all(worker is None for column in told for worker in column)
        assert [candidates.read_recent_share(n) for n in (0, 1)] == [0.0, 0.0]
        assert request.prompt_tokens == 100
        return Choice(len({*candidates.ids}) - 1, "last", list)
"""


def test_what_it_is_tried_on_is_two_of_which_nothing_is_told_and_two_that_differ(
    install: Install,
) -> None:
    install("curious-package", {"curious": "curious_module:P"}, curious_module=CURIOUS)
    make_policy("curious", FakeClock(), random.Random(1))


def test_what_is_offered_for_another_purpose_is_no_policy(install: Install) -> None:
    install("a-tool", {"clever": "nowhere:P"}, group="console_scripts")
    with pytest.raises(ConfigError, match="no policy is called 'clever'"):
        make_policy("clever", FakeClock(), random.Random(1))


def test_two_packages_with_one_name_are_both_named(install: Install) -> None:
    install("one-package", {"clever": "nowhere:P"})
    install("other-package", {"clever": "nowhere:P"})
    with pytest.raises(ConfigError, match=r"several packages.*: one-package, other-package"):
        make_policy("clever", FakeClock(), random.Random(1))


def test_nobody_takes_the_place_of_ours(install: Install) -> None:
    install("cuckoo", {"kv_cost": "nowhere:P"})
    make_policy("kv_cost", FakeClock(), random.Random(1))
    assert policy_names().count("kv_cost") == 1


def test_a_name_that_is_nobody_s_is_told_the_nearest_of_all(install: Install) -> None:
    install("my-package", OFFERED, my_policy=MODULE)
    with pytest.raises(ConfigError, match="did you mean 'fewest_tokens'"):
        make_policy("fewest-tokens", FakeClock(), random.Random(1))
    with pytest.raises(ConfigError, match="no policy is called"):
        make_policy("a\r\nb: c", FakeClock(), random.Random(1))


CHANGES = """
from radixgate.policies.base import Choice

class P:
    def __init__(self, clock, rng): ...

    def choose(self, request, candidates):
        if None not in candidates.running:
            CHANGE
        return Choice(0, "first", list)
"""


@pytest.mark.parametrize(
    ("change", "column"),
    [
        pytest.param("candidates.running.sort()", "running", id="sorts"),
        pytest.param("candidates.kv_share_used.reverse()", "kv_share_used", id="reverses"),
        pytest.param("candidates.requests_there[1] += 1", "requests_there", id="counts"),
        pytest.param("candidates.ids[0] = 'mine'", "ids", id="names"),
        pytest.param("candidates.waiting.pop()", "waiting", id="drops"),
        pytest.param("candidates.read_cached_tokens().sort()", "read_cached_tokens()", id="cached"),
        pytest.param(
            "candidates.read_decode_step_s().append(0.0)", "read_decode_step_s()", id="steps"
        ),
    ],
)
def test_one_that_changes_what_all_decisions_read_is_refused(
    install: Install, change: str, column: str, request: pytest.FixtureRequest
) -> None:
    module = "changing_" + request.node.name.partition("[")[2].rstrip("]")
    install("rude", {"rude": f"{module}:P"}, **{module: CHANGES.replace("CHANGE", change)})
    with pytest.raises(ConfigError, match="changes a column that it is given, which others read"):
        make_policy("rude", FakeClock(), random.Random(1))
    with pytest.raises(ConfigError) as caught:
        make_policy("rude", FakeClock(), random.Random(1))
    assert caught.value.message.endswith(f"which others read too: {column}")


def test_one_that_fails_at_workers_that_have_reported_is_refused(install: Install) -> None:
    text = CHANGES.replace("CHANGE", "raise KeyError('report')")
    install("late-package", {"late": "late_module:P"}, late_module=text)
    said = "among two workers that have reported: KeyError: 'report'"
    with pytest.raises(ConfigError, match=said):
        make_policy("late", FakeClock(), random.Random(1))


def test_columns_are_typed_as_what_cannot_be_changed() -> None:
    """So that mypy refuses to sort one."""
    hints = get_type_hints(Candidates)
    read = [get_args(hints[name])[1] for name in ("read_cached_tokens", "read_decode_step_s")]
    columns = [
        hint for name, hint in hints.items() if name[:5] != "read_" and name != "most_kv_share"
    ]
    assert len(columns) == 11
    assert {get_origin(hint) for hint in (*columns, *read)} == {Sequence}


class Wordy:
    """Has another reason each time, and loses count in the end."""

    def __init__(self) -> None:
        self.turn = 0

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        self.turn += 1
        return Choice(0 if self.turn <= 60 else -1, f"reason {self.turn}", lambda: [0.0])


def test_reasons_are_bounded_and_choices_looked_at() -> None:
    policy = Checked("wordy", Wordy())
    reasons = [policy.choose(PROMPT, columns(1)).branch for _ in range(60)]
    assert len(set(reasons)) == MOST_REASONS + 1
    assert reasons[-1] == "other"
    with pytest.raises(RadixgateError, match="'wordy' chose candidate -1 of 1"):
        policy.choose(PROMPT, columns(1))
