"""OINF, byte for byte against the package openinfer-oinf."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any

import dataclass_to_oinf as theirs
import numpy as np
import pytest

from weighbridge import oinf as ours


def both(fields: dict[str, Any], kinds: dict[str, Any]) -> tuple[bytes, bytes]:
    """The same dataclass with the classes of either."""

    def made(module: Any) -> bytes:
        def turned(value: Any) -> Any:
            return getattr(module, value[0])(*value[1], **value[2]) if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str) else value

        values = {name: turned(value) for name, value in fields.items()}
        annotated = [(name, kinds.get(name, Any)) for name in fields]
        return module.dataclass_to_oinf(make_dataclass("Model", annotated)(**values))

    return made(ours), made(theirs)


def spec(kind: str, *arguments: Any, **named: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    return kind, arguments, named


def test_the_example_of_the_specification_which_is_mlp_regression() -> None:
    random = np.random.default_rng(1)
    sizes = {"B": 4, "D": 16, "H": 32, "O": 8}
    fields: dict[str, Any] = {name: spec("SizeVar", value) for name, value in sizes.items()}
    for name, shape, scale in [("w1", (16, 32), 0.2), ("b1", (32,), 0.05), ("w2", (32, 8), 0.2), ("b2", (8,), 0.05)]:
        fields[name] = spec("TensorSpec", random.normal(scale=scale, size=shape).astype(np.float32))
    made, expected = both(fields, {})
    assert made == expected


def test_the_quantized_linear_example() -> None:
    random = np.random.default_rng(6)
    fields: dict[str, Any] = {name: spec("SizeVar", value) for name, value in {"B": 4, "D": 16, "O": 8}.items()}
    for name, shape in [("x", (4, 16)), ("w", (16, 8))]:
        fields[name] = spec("TensorSpec", random.integers(-8, 8, size=shape, dtype=np.int8), dtype="i4")
    made, expected = both(fields, {})
    assert made == expected


def test_every_type() -> None:
    values = {
        "i8": [-128, 127], "i16": [-30000, 30000], "i32": [-(2**31), 2**31 - 1], "i64": [-(2**62), 2**62],
        "u8": [0, 255], "u16": [0, 65535], "u32": [0, 2**32 - 1], "u64": [0, 2**63], "f16": [0.5, -2], "f32": [0.1, -3e30],
        "f64": [0.1, -3e300], "bool": [True, False, True], "bf16": [0.1, -3.3, 1e30], "f8": [0.5, -2, 1.75, 0],
        "i4": [-8, 7, 1], "i2": [-2, 1, 0, 1, -1], "i1": [-1, 0, 0], "u4": [15, 0, 9], "u2": [3, 0, 1], "u1": [1, 0, 1, 1, 0, 0, 1, 1, 1],
        "t2": [-1, 0, 1], "t1": [-1, 1, 1],
    }  # fmt: skip
    fields: dict[str, Any] = {}
    for name, some in values.items():
        fields[f"t.{name}".replace(".", "_")] = spec("TensorSpec", some, dtype=name)
        fields[f"u_{name}"] = spec("UninitializedTensor", name, [2, 3])
        fields[f"s_{name}"] = spec("TensorSpec", some[0], dtype=name)
        if name not in ("bool",):
            fields[f"m_{name}"] = spec("ScalarValue", some[0], dtype=name)
    made, expected = both(fields, {})
    assert made == expected


def test_metadata_of_every_kind() -> None:
    fields = {
        "text": "clamp_up", "yes": True, "no": False, "small": -3, "large": 70000, "real": 0.25,
        "list": [1, 2, 300], "floats": [0.5, 1.5], "nested": [[1, -2], [3, 4]], "flags": spec("Bitset", [True, False, True] * 5),
        "array": spec("ScalarValue", np.arange(3, dtype=np.int16)),
    }  # fmt: skip
    made, expected = both(fields, {name: Any for name in fields})
    assert made == expected


def test_fields_say_more(tmp_path: Path) -> None:
    @dataclass
    class Model:
        n: int
        w: list[float] = field(default_factory=lambda: [1.0, 2.0], metadata={"dtype": "f16"})
        y: Any = field(default=None, metadata={"tensor": True, "dtype": "i16", "shape": (2,)})
        tensors: dict[str, Any] = field(default_factory=lambda: {"W.0": np.ones(3, np.float32)})

    assert ours.dataclass_to_oinf(Model(5)) == theirs.dataclass_to_oinf(Model(5))
    ours.write_oinf(Model(5), tmp_path / "a.oinf")
    file = ours.read_oinf(tmp_path / "a.oinf")
    assert file.sizevars == {"n": 5} and file.tensors["W.0"].tolist() == [1, 1, 1] and "y" not in file.tensors


def test_what_does_not_fit_is_refused() -> None:
    for value in [spec("TensorSpec", [8], dtype="i4"), spec("TensorSpec", [0], dtype="t1"), spec("SizeVar", -1), object()]:
        for module in (ours, theirs):
            made = getattr(module, value[0])(*value[1], **value[2]) if isinstance(value, tuple) else value
            with pytest.raises(ValueError):
                module.dataclass_to_oinf(make_dataclass("Model", [("x", Any)])(made))


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Model:\n    D: int\n    mode: str\n    rate: float\n"
    )
    (tmp_path / "data.json").write_text(json.dumps({"D": 3, "mode": "relu", "rate": 0.5}))
    run = [sys.executable, "-m", "weighbridge.oinf"]
    made = subprocess.run(
        [*run, "--input", "models:Model", "--json", "data.json", "--output", "a.oinf"], cwd=tmp_path, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    shown = subprocess.run([*run, "verify", "a.oinf"], cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0 and "D := 3" in shown.stdout and 'mode: str = "relu"' in shown.stdout
    wrong = subprocess.run([*run, "--input", "models:Absent", "--output", "b.oinf"], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 1 and "Absent" in wrong.stderr
