"""Files of the `safetensors` package through the program and back, and the program's through it."""

import json

import numpy as np
import safetensors
from safetensors import TensorSpec, safe_open, serialize_file
from safetensors.numpy import load_file, save_file

import oinf_peer
from common import Case, SafeTensors, bf16_to_f32, e4m3_to_f32, e5m2_to_f32, expanded, for_each

# As `inspect` calls the types, with values of each.
NATIVE = {k: v for k, v in oinf_peer.VALUES.items() if oinf_peer.STORED[k].lower() == k}
NATIVE.pop("bf16")
SHAPES = [(), (1,), (5,), (0,), (3, 2), (2, 0, 3), (2, 1, 3, 2)]
# Types that numpy lacks, by the name that the package's writer takes.
OTHERS = {
    "bfloat16": ("bf16", "u2", bf16_to_f32),
    "float8_e5m2": ("f8", "u1", e5m2_to_f32),
    "float8_e4m3fn": ("f8e4m3", "u1", e4m3_to_f32),
}


def arrays_of(kind):
    named = {f"{kind}.all": NATIVE[kind]}
    for shape in SHAPES:
        named[f"{kind}.{'x'.join(map(str, shape)) or 's'}"] = oinf_peer.shaped(kind, shape)
    return named


def save_codes(path, tensors, metadata=None):
    """Tensors of types that numpy lacks, from their stored bits: name to (type, bits)."""
    kept = {name: np.ascontiguousarray(bits) for name, (_, bits) in tensors.items()}
    specs = {}
    for name, (dtype, _) in tensors.items():
        data = {"data_ptr": kept[name].ctypes.data, "data_len": kept[name].nbytes}
        specs[name] = TensorSpec(dtype=dtype, shape=kept[name].shape, **data)
    serialize_file(specs, str(path), metadata)
    return path


class SafetensorsCase(Case):
    def load(self, path):
        """Tensors and metadata as the package reads them, without the program's own entry."""
        with safe_open(str(path), framework="np") as file:
            metadata = dict(file.metadata() or {})
            metadata.pop("weighbridge", None)
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        return tensors, metadata

    def assert_tensors(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for name, array in expected.items():
            self.assertEqual(found[name].dtype, array.dtype, name)
            self.assert_values(found[name], array, name)


@expanded
class EveryType(SafetensorsCase):
    @for_each(NATIVE)
    def test_reading(self, kind):
        arrays = arrays_of(kind)
        source = self.path("source.safetensors")
        save_file(arrays, source, {"format": "np"})
        self.assert_clean(source)
        result = self.inspect(source, "--values")
        self.assertEqual((result["format"], result["metadata"]), ("safetensors", {"format": "np"}))
        shown = {t["name"]: t for t in result["tensors"]}
        self.assertEqual(sorted(shown), sorted(arrays))
        for name, array in arrays.items():
            self.assertEqual(shown[name]["encoding"], kind)
            self.assert_shown(shown[name], array)

    @for_each(NATIVE)
    def test_through_oinf(self, kind):
        arrays = arrays_of(kind)
        save_file(arrays, self.path("source.safetensors"), {"format": "np", "note": "a: é"})
        middle = self.convert(self.path("source.safetensors"), "middle.oinf")
        self.assert_clean(middle)
        back = self.convert(middle, "back.safetensors")
        tensors, metadata = self.load(back)
        self.assert_tensors(tensors, arrays)
        self.assertEqual(metadata, {"format": "np", "note": "a: é"})

    @for_each(["f32", "f16", "i32", "i16", "i8", "u32", "u16", "u8"])
    def test_through_embd(self, kind):
        """The types that EMBD holds; it has no scalars."""
        arrays = {n: a for n, a in arrays_of(kind).items() if a.ndim > 0}
        save_file(arrays, self.path("source.safetensors"), {"model_name": "é / x"})
        middle = self.convert(self.path("source.safetensors"), "middle.weights")
        tensors, metadata = self.load(self.convert(middle, "back.safetensors"))
        self.assert_tensors(tensors, arrays)
        self.assertEqual(metadata["model_name"], "é / x")

    @for_each(OTHERS)
    def test_types_that_numpy_lacks(self, dtype):
        encoding, stored, decode = OTHERS[dtype]
        codes = np.arange(2 ** (8 * np.dtype(stored).itemsize)).astype(stored)
        codes = codes[np.isfinite(decode(codes))]
        tensors = {"all": (dtype, codes), "s": (dtype, codes[60]), "e": (dtype, codes[:0])}
        source = save_codes(self.path("source.safetensors"), tensors)
        self.assert_clean(source)
        shown = {t["name"]: t for t in self.inspect(source, "--values")["tensors"]}
        self.assertEqual({t["encoding"] for t in shown.values()}, {encoding})
        self.assert_shown(shown["all"], decode(codes))
        # Through each format that holds the type, and to a new safetensors file.
        targets = ["direct.safetensors"] + ["middle.oinf"] * (encoding in ("bf16", "f8"))
        for target in targets:
            middle = self.convert(source, target)
            back = SafeTensors(self.convert(middle, f"back-of-{target}.safetensors"))
            self.assertEqual(back.types, SafeTensors(source).types)
            for name, (_, bits) in tensors.items():
                self.assertEqual(back.raw[name], bits.tobytes(), name)


class Writing(SafetensorsCase):
    def test_read_by_the_package(self):
        """Everything in one file; the package validates offsets and header."""
        arrays = {n: a for kind in NATIVE for n, a in arrays_of(kind).items()}
        metadata = {"format": "np", "empty": "", "unicode": "é 東京 \n\t\"\\", "key with space": "x"}
        save_file(arrays, self.path("source.safetensors"), metadata)
        target = self.convert(self.path("source.safetensors"), "target.safetensors")
        self.assert_clean(target)
        tensors, found = self.load(target)
        self.assert_tensors(tensors, arrays)
        self.assertEqual(found, metadata)
        self.assert_tensors(load_file(target), arrays)
        # Every tensor begins at a multiple of its element's size, for those who map the file.
        size = int.from_bytes(target.read_bytes()[:8], "little") + 8
        header = json.loads(target.read_bytes()[8:size])
        for name, array in arrays.items():
            start = header[name]["data_offsets"][0]
            self.assertEqual((size + start) % array.dtype.itemsize, 0, name)

    def test_complex(self):
        array = np.array([[1 + 2j, -0.5j], [3, np.pi]], np.complex64)
        save_file({"c": array}, self.path("source.safetensors"))
        target = self.convert(self.path("source.safetensors"), "target.safetensors")
        self.assert_tensors(self.load(target)[0], {"c": array})
        self.assert_clean(target)

    def test_narrowing_rounds_as_numpy_does(self):
        random = np.random.default_rng(7)
        array = np.concatenate([random.normal(size=1000), 2.0 ** np.arange(-26, 16)]).astype("f4")
        save_file({"x": array, "i": np.arange(3)}, self.path("source.safetensors"))
        options = ["--dtype", "f16", "--allow-loss"]
        target = self.convert(self.path("source.safetensors"), "target.safetensors", *options)
        self.assert_tensors(self.load(target)[0], {"x": array.astype("f2"), "i": np.arange(3)})
        # A loss is refused unless it is allowed.
        refused = ["convert", self.path("source.safetensors"), self.path("x.safetensors")]
        self.refused(*refused, "--dtype", "f16", code=2, saying=["x", "--allow-loss"])
        self.assertFalse(self.path("x.safetensors").exists())

    def test_choosing_and_renaming(self):
        arrays = {f"layer.{i}.w": np.full((2, 2), i, "f4") for i in range(4)}
        save_file(arrays, self.path("source.safetensors"))
        options = ["--select", "layer.[12].*", "--rename", "layer.1.w=first", "--set", "k=v"]
        target = self.convert(self.path("source.safetensors"), "target.safetensors", *options)
        tensors, metadata = self.load(target)
        expected = {"first": arrays["layer.1.w"], "layer.2.w": arrays["layer.2.w"]}
        self.assert_tensors(tensors, expected)
        self.assertEqual(metadata, {"k": "v"})

    def test_without_tensors(self):
        save_file({}, self.path("source.safetensors"), {"only": "text"})
        target = self.convert(self.path("source.safetensors"), "target.safetensors")
        self.assertEqual(self.load(target), ({}, {"only": "text"}))

    def test_names(self):
        names = ["", "a b", "é", "東京", "a/b", "a\"b\\c", "\t", "__metadata", "x" * 300]
        arrays = {name: np.array([i], "i4") for i, name in enumerate(names)}
        save_file(arrays, self.path("source.safetensors"))
        self.assert_clean(self.path("source.safetensors"))
        target = self.convert(self.path("source.safetensors"), "target.safetensors")
        self.assert_tensors(self.load(target)[0], arrays)


class Shards(SafetensorsCase):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(8)
        self.arrays = {
            "a.weight": random.normal(size=(4, 3)).astype("f4"),
            "a.bias": random.normal(size=4).astype("f2"),
            "b.ids": np.arange(7, dtype="i8"),
            "b.none": np.zeros((0, 2), "f4"),
        }
        for n, prefix in enumerate("ab", 1):
            part = {k: v for k, v in self.arrays.items() if k.startswith(prefix)}
            save_file(part, self.path(self.shard(n)), {"format": "np"})
        self.map = {k: self.shard(1 if k.startswith("a") else 2) for k in self.arrays}
        self.index = self.path("model.safetensors.index.json")
        self.write_index()

    def shard(self, n):
        return f"model-{n:05}-of-00002.safetensors"

    def write_index(self):
        total = sum(a.nbytes for a in self.arrays.values())
        index = {"metadata": {"total_size": total}, "weight_map": self.map}
        self.index.write_text(json.dumps(index, indent=2))

    def test_reading(self):
        self.assert_clean(self.index)
        result = self.inspect(self.index, "--values")
        self.assertEqual((result["format"], result["layout"]), ("safetensors", "sharded"))
        shown = {t["name"]: t for t in result["tensors"]}
        for name, array in self.arrays.items():
            self.assert_shown(shown[name], array)
        tensors, metadata = self.load(self.convert(self.index, "whole.safetensors"))
        self.assert_tensors(tensors, self.arrays)
        self.assertEqual(metadata, {"format": "np"})
        back = self.convert(self.convert(self.index, "whole.oinf"), "back.safetensors")
        self.assert_tensors(self.load(back)[0], self.arrays)

    def test_the_map_decides(self):
        """A shard may hold tensors that the map does not name, or names elsewhere."""
        more = {"a.bias": np.full(4, 9, "f2"), "c.extra": np.ones(2, "f4")}
        part = {k: v for k, v in self.arrays.items() if k.startswith("b")}
        save_file({**part, **more}, self.path(self.shard(2)))
        tensors, _ = self.load(self.convert(self.index, "whole.safetensors"))
        self.assert_tensors(tensors, self.arrays)

    def test_a_missing_shard(self):
        self.path(self.shard(2)).unlink()
        self.refused("inspect", self.index, code=3, saying=self.shard(2))

    def test_a_missing_tensor(self):
        self.map["b.more"] = self.shard(2)
        self.write_index()
        self.refused("inspect", self.index, code=3, saying=["b.more", self.shard(2)])

    def test_a_shard_outside_the_folder(self):
        for name in ["../x.safetensors", "/etc/hostname", "sub/../../x.safetensors"]:
            self.map["a.bias"] = name
            self.write_index()
            self.refused("inspect", self.index, code=3)


class Refusals(SafetensorsCase):
    def test_what_the_package_refuses(self):
        """Broken files: the package throws, the program says so with its exit code."""
        save_file({"x": np.arange(6, dtype="f4")}, self.path("good.safetensors"))
        good = self.path("good.safetensors").read_bytes()
        size = int.from_bytes(good[:8], "little")
        header = json.loads(good[8 : 8 + size])

        def made(**changes):
            text = json.dumps({"x": {**header["x"], **changes}}).encode()
            return len(text).to_bytes(8, "little") + text + good[8 + size :]

        broken = {
            "cut": good[:-1],
            "longer": good + b"\0",
            "header": (2**40).to_bytes(8, "little") + good[8:],
            "shape": made(shape=[7]),
            "type": made(dtype="F31"),
            "offsets": made(data_offsets=[4, 28]),
            "overflow": made(shape=[2**62, 4]),
        }
        for name, data in broken.items():
            with self.subTest(name):
                path = self.path(f"{name}.safetensors")
                path.write_bytes(data)
                with self.assertRaises(safetensors.SafetensorError):
                    load_file(path)
                self.refused("inspect", path, code=3)
                self.run_program("verify", path, code=1)
