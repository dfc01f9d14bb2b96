"""What cannot be written is said before anything is measured."""

from pathlib import Path
from typing import Any

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.batch.config import BatchConfig
from radixgate.loadgen.bench import run_bench
from radixgate.loadgen.compare.config import CompareConfig
from radixgate.loadgen.compare.run import run_compare
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.demo import run_demo
from radixgate.loadgen.demo_config import DemoConfig
from radixgate.loadgen.output_places import check_file, check_folder, writing
from radixgate.loadgen.workload_config import WorkloadConfig

NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize("name", ["output_file", "schedule_file", "output_folder"])
def test_a_bench_asks_nobody_if_its_results_would_be_lost(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    where: dict[str, Any] = {name: str(tmp_path / "file" / "below")}
    flag = "--" + name.replace("_", "-")
    with pytest.raises(ConfigError, match=f"^{flag} .*below cannot be written: "):
        run_bench(BenchConfig(base_url=NOBODY, num_prompts=1, **where))


def test_neither_does_a_comparison(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    bench = BenchConfig(num_prompts=1, output_folder=str(tmp_path / "file"))
    with pytest.raises(ConfigError, match=r"^--output-folder .*file cannot be written: "):
        run_compare(
            CompareConfig(urls=(f"a={NOBODY}", f"b={NOBODY}")),
            bench,
            WorkloadConfig(),
            ArrivalConfig(),
        )


def test_a_comparison_whose_schedule_cannot_be_written_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / "schedule.jsonl").mkdir()
    with pytest.raises(ConfigError, match=r"^--output-folder .* cannot be written: Is a directory"):
        run_compare(
            CompareConfig(urls=(f"a={NOBODY}", f"b={NOBODY}")),
            BenchConfig(num_prompts=1, output_folder=str(tmp_path)),
            WorkloadConfig(),
            ArrivalConfig(),
        )


def test_neither_does_a_demo(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--output .* cannot be written: "):
        run_demo(DemoConfig(output=str(tmp_path)))


def test_a_trial_makes_folders_and_leaves_nothing_else(tmp_path: Path) -> None:
    check_file("--json", str(tmp_path / "a" / "b.json"))
    check_folder("--output-folder", str(tmp_path / "c" / "d"))
    check_file("--json", "/dev/null")
    check_file("--json", None)
    check_folder("--output-folder", None)
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")) == [
        "a",
        "c",
        "c/d",
    ]


def test_a_disk_that_fails_when_it_comes_to_it_is_named_too(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"^--output-folder .* cannot be written: No space"),
        writing("--output-folder", tmp_path),
    ):
        Path("/dev/full").write_bytes(b"x")


def test_a_file_that_is_there_keeps_what_it_holds(tmp_path: Path) -> None:
    there = tmp_path / "results.jsonl"
    there.write_bytes(b"kept\n")
    check_file("--output-file", str(there))
    assert there.read_bytes() == b"kept\n"
    with pytest.raises(ConfigError, match="Is a directory"):
        check_file("--output-file", str(tmp_path))


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "localhost:8000", "foo", "ftp://a:1", "http:///x"]
)
def test_a_server_s_address_is_a_url(url: str) -> None:
    """A batch would write an error as the answer of every line."""
    with pytest.raises(ConfigError, match=f"^--base-url {url}: http://host:port"):
        BatchConfig(input="a.jsonl", base_url=url)
    with pytest.raises(ConfigError, match=f"^--base-url {url}: http://host:port"):
        BenchConfig(base_url=url)
    with pytest.raises(ConfigError, match=f"^--urls {url}: http://host:port"):
        CompareConfig(urls=(f"a={url}", f"b={NOBODY}"))


def test_urls_may_have_a_path_and_no_port() -> None:
    for url in ("https://api.example.com/v1", "http://[::1]:8000/"):
        assert BenchConfig(base_url=url).url == url.rstrip("/")
