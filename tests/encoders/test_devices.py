from pathlib import Path

import pytest
import torch

from vitcapr.encoders.devices import cpu_has_bfloat16, dtype_name, resolve_device, resolve_dtype
from vitcapr.errors import UserError

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("fpu avx512f avx512_bf16", True), ("fpu amx_tile amx_bf16", True), ("fpu avx2 avx512f", False), ("", False)],
)
def test_processor_flags_decide_bfloat16(tmp_path: Path, flags: str, expected: bool) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t: none\n")
    assert cpu_has_bfloat16(cpuinfo) is expected
    assert cpu_has_bfloat16(tmp_path / "absent") is False


def test_names_resolve_to_themselves() -> None:
    assert resolve_dtype("float16", CPU) is torch.float16
    assert resolve_dtype("auto", CPU) is (torch.bfloat16 if cpu_has_bfloat16() else torch.float32)
    assert dtype_name(torch.bfloat16) == "bfloat16"
    with pytest.raises(UserError, match="unknown dtype 'float8'"):
        resolve_dtype("float8", CPU)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_one_line() -> None:
    assert resolve_device("auto") == CPU
    with pytest.raises(UserError, match="sees no GPU"):
        resolve_device("cuda")
