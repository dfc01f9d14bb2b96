"""The kernels are compiled once, found again, and never half there."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from native_kernels import MACHINE, flags_for, native_or_skip
from radixgate.errors import NativeUnavailable
from radixgate.worker.forward.native_build import Compiler, build_native, find_compiler
from radixgate.worker.forward.native_library import NativeLibrary, native_or_none
from radixgate.worker.weights.model_store import DEFAULT_CACHE_DIR

QUICK = ("-fPIC", "-fopenmp")


@pytest.fixture
def compiler() -> Compiler:
    try:
        return find_compiler()
    except NativeUnavailable as exc:
        pytest.skip(exc.message)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A small program in the place of ours."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "one.h").write_text("inline int one() { return 1; }\n")
    (folder / "a.cpp").write_text('#include "one.h"\nextern "C" int a() { return one(); }\n')
    (folder / "b.cpp").write_text('extern "C" int b() { return 2; }\n')
    return folder


class Watch:
    """A compiler that counts how often it is started, as a script around the real one."""

    def __init__(self, folder: Path, real: Compiler, *, slow: bool = False) -> None:
        self._starts = folder / "starts"
        script = folder / "g++"
        pause = "sleep 0.3\n" if slow else ""
        script.write_text(f'#!/bin/sh\necho x >> {self._starts}\n{pause}exec {real.path} "$@"\n')
        script.chmod(0o755)
        self.compiler = Compiler(str(script), real.version)

    @property
    def starts(self) -> int:
        return len(self._starts.read_text().splitlines()) if self._starts.exists() else 0


def build(folder: Path, compiler: Compiler, sources: Path, flags: Sequence[str] = QUICK) -> Path:
    return build_native(folder, compiler, sources=sources, flags=flags)


def test_what_was_compiled_is_found_again(
    tmp_path: Path, compiler: Compiler, sources: Path
) -> None:
    watch = Watch(tmp_path, compiler)
    first = build(tmp_path / "cache", watch.compiler, sources)
    assert watch.starts == 3  # two units, and the library
    assert build(tmp_path / "cache", watch.compiler, sources) == first
    assert watch.starts == 3


@pytest.mark.slow
@pytest.mark.parametrize("change", ["source", "header", "flags", "compiler"])
def test_a_change_is_compiled_anew(
    change: str, tmp_path: Path, compiler: Compiler, sources: Path
) -> None:
    first = build(tmp_path, compiler, sources)
    flags: Sequence[str] = QUICK
    if change == "source":
        (sources / "b.cpp").write_text('extern "C" int b() { return 3; }\n')
    elif change == "header":
        (sources / "one.h").write_text("inline int one() { return 11; }\n")
    elif change == "flags":
        flags = (*QUICK, "-O1")
    else:
        compiler = Compiler(compiler.path, compiler.version + " patched")
    assert build(tmp_path, compiler, sources, flags) != first


@pytest.mark.slow
def test_two_workers_that_start_at_once_compile_once(
    tmp_path: Path, compiler: Compiler, sources: Path
) -> None:
    watch = Watch(tmp_path, compiler, slow=True)
    with ThreadPoolExecutor(4) as pool:
        built = list(
            pool.map(lambda _: build(tmp_path / "cache", watch.compiler, sources), range(4))
        )
    assert len(set(built)) == 1
    assert watch.starts == 3


def test_what_fails_to_compile_leaves_nothing_and_says_why(
    tmp_path: Path, compiler: Compiler, sources: Path
) -> None:
    (sources / "b.cpp").write_text("this is not C++\n")
    with pytest.raises(NativeUnavailable, match=r"b\.cpp(.|\n)*error"):
        build(tmp_path / "cache", compiler, sources)
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_no_compiler_is_an_error_that_names_it() -> None:
    with pytest.raises(NativeUnavailable, match="no compiler no-such-compiler"):
        find_compiler("no-such-compiler")


def test_a_cache_that_cannot_be_written_is_an_error_that_names_it(
    tmp_path: Path, compiler: Compiler, sources: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NativeUnavailable, match=str(tmp_path / "file")):
        build(tmp_path / "file", compiler, sources)


def test_a_library_that_is_none_of_ours_is_refused(
    tmp_path: Path, compiler: Compiler, sources: Path
) -> None:
    with pytest.raises(NativeUnavailable, match="cannot be loaded"):
        NativeLibrary(build(tmp_path, compiler, sources))


def test_without_kernels_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert native_or_none(tmp_path) is None
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "torch computes alone" in record.message


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are of another processor")
@pytest.mark.parametrize("machine", ["x86-64-v3", "x86-64"])
def test_the_kernels_on_an_older_processor(machine: str, compiler: Compiler) -> None:
    """Vectors of eight and of four floats: other paths through the same sources."""
    build_native(DEFAULT_CACHE_DIR.expanduser() / "native", compiler, flags=flags_for(machine))
    here = Path(__file__).parent
    files = [str(here / "test_attention_cpu.py"), str(here / "test_kernels_cpu.py")]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", *files],
        env=os.environ | {MACHINE: machine},
        check=True,
    )


@pytest.mark.slow
def test_the_threads_are_those_of_torch_alone() -> None:
    """One OpenMP library in the process, found through what torch has loaded."""
    native = native_or_skip()
    program = (
        "import sys; from pathlib import Path\n"
        "from radixgate.worker.forward.native_library import NativeLibrary\n"
        f"NativeLibrary(Path({str(native.path)!r}))\n"
        "lines = Path('/proc/self/maps').read_text().splitlines()\n"
        "print(len({line.split()[-1] for line in lines if 'omp' in Path(line.split()[-1]).name}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"
