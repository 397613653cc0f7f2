"""Tensors of torch, against safetensors'."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch

import weighbridge

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint64, torch.uint32, torch.uint16, torch.uint8, torch.bool, torch.complex64, torch.float8_e5m2,
    torch.float8_e4m3fn,
]  # fmt: skip


def tensors() -> dict[str, torch.Tensor]:
    made = {str(dtype)[6:]: (torch.arange(24).reshape(2, 3, 4) % 5).to(dtype) for dtype in DTYPES}
    made["scalar"] = torch.tensor(3.5)
    made["empty"] = torch.zeros(0, 4)
    return made


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    bits = [tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)


@pytest.fixture()
def path(tmp_path: Path) -> Path:
    safetensors.torch.save_file(tensors(), tmp_path / "a.safetensors")
    return tmp_path / "a.safetensors"


def test_safe_open_gives_the_same_tensors(path: Path) -> None:
    with safetensors.safe_open(path, "pt") as theirs, weighbridge.safe_open(path, "pt", device="cpu") as ours:
        assert list(theirs.keys()) == ours.keys()
        for name, tensor in tensors().items():
            assert same(ours.get_tensor(name), tensor), name
            assert same(theirs.get_tensor(name), tensor), name
            assert ours.get_slice(name).get_dtype() == theirs.get_slice(name).get_dtype()
        for index in (np.s_[1:], np.s_[:, 1:2], np.s_[0], np.s_[1, 2, 3], np.s_[..., 1:]):
            assert same(ours.get_slice("bfloat16")[index], tensors()["bfloat16"][index]), index


def test_tensors_look_at_the_file_and_changing_one_changes_nothing_else(path: Path) -> None:
    before = path.read_bytes()
    with weighbridge.safe_open(path, "pt") as file:
        first, second = file.get_tensor("float32"), file.get_tensor("float32")
        assert first.data_ptr() == second.data_ptr()
        plain = weighbridge.open(path)["float32"]
    first += 1
    assert torch.equal(first, tensors()["float32"] + 1)
    assert np.array_equal(plain, tensors()["float32"].numpy()) and path.read_bytes() == before


def test_decoded_and_sharded_tensors_can_be_changed(path: Path, tmp_path: Path) -> None:
    weights = {f"layer.{i}": torch.randn(64, 256) for i in range(3)}
    weighbridge.save(tmp_path / "plain.safetensors", weights)
    weighbridge.quantize(tmp_path / "plain.safetensors", tmp_path / "small.mcf", "q8")
    expected = weighbridge.load(tmp_path / "small.mcf")
    with weighbridge.safe_open(tmp_path / "small.mcf", "pt") as file:
        for name in weights:
            tensor = file.get_tensor(name)
            assert np.array_equal(tensor.numpy(), expected[name])
            assert torch.allclose(tensor, weights[name], atol=0.1)
            assert np.array_equal(file.get_slice(name)[3:5, ::2].numpy(), expected[name][3:5, ::2])
            tensor.zero_()
            assert np.array_equal(file.get_tensor(name).numpy(), expected[name])


def test_tensors_are_saved(tmp_path: Path) -> None:
    odd = {"transposed": torch.arange(6.0).reshape(2, 3).T, "grad": torch.ones(3, requires_grad=True)}
    weighbridge.save(tmp_path / "b.safetensors", {**tensors(), **odd})
    found = safetensors.torch.load_file(tmp_path / "b.safetensors")
    assert found.keys() == tensors().keys() | odd.keys()
    for name, tensor in {**tensors(), **odd}.items():
        assert same(found[name], tensor.detach()), name


def test_bf16_without_ml_dtypes(path: Path) -> None:
    program = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "import torch, weighbridge\n"
        "with weighbridge.safe_open(sys.argv[1], 'pt') as f:\n"
        "    assert f.get_tensor('bfloat16').dtype == torch.bfloat16\n"
        "    assert f.get_slice('float8_e4m3fn')[:1].dtype == torch.float8_e4m3fn\n"
        "weighbridge.save(sys.argv[1], {'w': torch.ones(3, dtype=torch.bfloat16)})\n"
        "assert weighbridge.open(sys.argv[1]).tensor('w').encoding == 'bf16'\n"
        "assert weighbridge.open(sys.argv[1])['w'].dtype == 'uint16'\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
