"""Compiles the C++ kernels for this machine once, and keeps the result."""

import fcntl
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import xxhash

from radixgate.errors import NativeUnavailable
from radixgate.log import fields

SOURCES: Final = Path(__file__).parent / "native"
# What GCC finds "maybe uninitialized" are its own intrinsics.
FLAGS: Final = (
    "-std=c++20",
    "-O2",  # -O3 is no faster, as what is hot is unrolled by hand, and compiles twice as long
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
    "-march=native",
    "-fopenmp",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wno-maybe-uninitialized",
    "-Wno-psabi",
)

_COMPILER: Final = "g++"
_LONGEST_S: Final = 600.0  # a loaded machine takes a minute
_CPUINFO: Final = Path("/proc/cpuinfo")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler that answered when asked for its version."""

    path: str
    version: str


def find_compiler(name: str = _COMPILER) -> Compiler:
    """The GNU compiler on the search path. Raises NativeUnavailable if there is none."""
    path = shutil.which(name)
    if path is None:
        raise NativeUnavailable(f"there is no compiler {name} on the search path")
    return Compiler(path, _output([path, "--version"]))


def build_native(
    folder: Path, compiler: Compiler, *, sources: Path = SOURCES, flags: Sequence[str] = FLAGS
) -> Path:
    """The shared library of all sources, compiled now unless `folder` has it already.

    Some 15 s of CPU time once for each version of sources, flags, compiler and processor. Several
    workers may start at once: one compiles under a lock, which the system frees if that worker
    dies; a library appears under its name only when whole. Raises NativeUnavailable, with what the
    compiler said.
    """
    library = folder / f"kernels-{_key(compiler, sources, flags)}.so"
    if library.exists():
        return library
    try:
        # Whoever can write here chooses the code we run.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(library.with_suffix(".lock")):
            if not library.exists():
                _log.info("compiling the native kernels once", extra=fields(to=library))
                _compile(library, compiler, sources, flags)
    except OSError as exc:
        raise NativeUnavailable(f"cannot keep compiled kernels under {folder}: {exc}") from exc
    return library


def _compile(library: Path, compiler: Compiler, sources: Path, flags: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=".build-") as scratch:

        def compile_one(source: Path) -> str:
            unit = Path(scratch, f"{source.stem}.o")
            _output([compiler.path, *flags, "-c", str(source), "-o", str(unit)])
            return str(unit)

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            units = list(pool.map(compile_one, sorted(sources.glob("*.cpp"))))
        whole = Path(scratch, library.name)
        # Without -fopenmp here: the calls into OpenMP are then bound to the library that torch has
        # loaded. A second one would bring threads of its own, and each would spin beside the other.
        _output([compiler.path, "-shared", *units, "-o", str(whole)])
        whole.replace(library)


def _key(compiler: Compiler, sources: Path, flags: Sequence[str]) -> str:
    digest = xxhash.xxh3_128()
    for part in (compiler.version, *flags, *_processor()):
        digest.update(f"{part}\0".encode())
    for source in sorted((*sources.glob("*.cpp"), *sources.glob("*.h"))):
        digest.update(f"{source.name}\0".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _processor() -> list[str]:
    """What -march=native looks at; a cache may be shared between machines."""
    about = [platform.machine()]
    if _CPUINFO.exists():
        wanted = ("model name", "flags", "Features", "CPU part")
        lines = _CPUINFO.read_text().splitlines()
        about += sorted({line for line in lines if line.startswith(wanted)})
    return about


def _output(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LONGEST_S,
            check=True,
        )
    except subprocess.CalledProcessError as exc:
        said = "\n".join(str(exc.stderr).splitlines()[-12:])
        raise NativeUnavailable(f"{' '.join(command)} failed:\n{said}") from exc
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise NativeUnavailable(f"{command[0]} cannot be used: {exc}") from exc
    return done.stdout


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock across processes; waits as long as another compiles."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
