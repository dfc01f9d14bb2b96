"""The Triton kernels: right under the interpreter, and accepted by the compiler for GPUs."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from radixgate.errors import ConfigError
from radixgate.worker.forward.batch import KvPool

SUITE = Path(__file__).with_name("test_attention_backends.py")
MODULE = "radixgate.worker.forward.attention_triton"


@pytest.mark.slow
@pytest.mark.timeout(1_000)
def test_the_kernels_pass_the_suite_of_all_backends_under_the_interpreter() -> None:
    # Long contexts take a minute there, and the kernels do nothing else with them.
    command = [sys.executable, "-m", "pytest", str(SUITE), "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-k", "triton and not long_c"]
    done = subprocess.run(
        command,
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


def test_without_the_package_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'radixgate\[gpu\]'"):
        import_module(MODULE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "named"),
    [
        pytest.param(torch.bfloat16, r"fp32 or fp16, not in torch\.bfloat16", id="dtype"),
        pytest.param(torch.float16, "give --device cuda", id="no-gpu"),
    ],
)
def test_a_pool_that_the_kernels_cannot_use_is_refused(dtype: torch.dtype, named: str) -> None:
    pool = KvPool.allocate(layers=1, slots=16, kv_heads=1, head_dim=16, dtype=dtype)
    with pytest.raises(ConfigError, match=named):
        import_module(MODULE).TritonAttention(pool)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION:UserWarning")
@pytest.mark.parametrize("stored", ["fp32", "fp16"])
@pytest.mark.parametrize("rows", [1, 8], ids=["decode", "chunk"])
def test_the_compiler_for_gpus_takes_the_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: int, stored: str
) -> None:
    """It needs no GPU, and sees what the interpreter does not: types, and memory on the chip."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    triton = import_module("triton")
    target = import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)
    sizes = {"ROWS": rows, "LANES": 16 // min(rows, 4), "GROUP": 3, "KV_HEADS": 3}
    sizes |= {"HEAD_DIM": 64, "DIMS": 64, "PAGE_SIZE": 16, "TOKENS": 32}
    pointers = {"q": "fp32", "out": "fp32", "keys": stored, "values": stored}
    signature = {name: f"*{kind}" for name, kind in pointers.items()}
    signature |= {"tiles": "*i32", "pages": "*i32", "q_stride": "i32", "pages_stride": "i32"}
    signature |= {"scale": "fp32"} | dict.fromkeys(sizes, "constexpr")
    source = triton.compiler.ASTSource(
        fn=import_module(MODULE)._attend, signature=signature, constexprs=sizes
    )
    compiled = triton.compile(source, target=target)
    assert compiled.asm["cubin"]
    assert compiled.metadata.shared <= 48 * 1024  # what every GPU has without asking for more
