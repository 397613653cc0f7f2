"""OINF version 1: the same bytes as `openinfer-oinf` writes, and the same values both ways."""

import numpy as np
import safetensors
from safetensors.numpy import load_file

import oinf_peer as peer
from common import Case, SafeTensors, expanded, for_each


def _packed(bits):
    return np.packbits(np.array(bits, bool), bitorder="little").tobytes()


class OinfCase(Case):
    def through_safetensors(self, source):
        """Converts there and back, and straight; both must give the very bytes of the source."""
        self.assert_same_bytes(self.convert(source, "direct.oinf"), source)
        middle = self.convert(source, "middle.safetensors")
        # The package's own validation.
        safetensors.deserialize(middle.read_bytes())
        self.assert_same_bytes(self.convert(middle, "back.oinf"), source)
        return SafeTensors(middle)

    def check_tensors(self, source, kind, arrays):
        """Every tensor with its values in the safetensors file and in what `inspect` shows."""
        self.assert_clean(source)
        middle = self.through_safetensors(source)
        self.assertEqual(middle.names(), sorted(arrays))
        shown = {t["name"]: t for t in self.inspect(source, "--values")["tensors"]}
        for name, expected in arrays.items():
            self.assertEqual(middle.types[name], peer.STORED[kind], name)
            self.assert_values(middle.tensors[name], expected, name)
            self.assertEqual(shown[name]["encoding"], kind)
            self.assertEqual(shown[name]["shape"], list(expected.shape))
        return shown


@expanded
class Tensors(OinfCase):
    @for_each(peer.TYPES)
    def test_values(self, kind):
        arrays = peer.tensors_of(kind)
        tensors = {name: peer.spec(kind, array) for name, array in arrays.items()}
        source = peer.write(self.path("source.oinf"), tensors)
        self.check_tensors(source, kind, arrays)
        if peer.STORED[kind] in ("BF16", "F8_E5M2"):
            return
        # numpy has the type: the package's own reader gives the values too.
        for name, values in load_file(self.folder / "middle.safetensors").items():
            self.assert_values(values, arrays[name], name)

    @for_each(peer.TYPES)
    def test_values_shown(self, kind):
        arrays = peer.tensors_of(kind)
        tensors = {name: peer.spec(kind, array) for name, array in arrays.items()}
        source = peer.write(self.path("source.oinf"), tensors)
        shown = {t["name"]: t for t in self.inspect(source, "--values")["tensors"]}
        for name, expected in arrays.items():
            self.assert_shown(shown[name], expected)

    @for_each(peer.TYPES)
    def test_declared(self, kind):
        shapes = {"none": (), "some": (4, 9), "zero": (0, 3), "vast": (2**40, 2**20)}
        tensors = {f"d.{name}": peer.declared(kind, shape) for name, shape in shapes.items()}
        values = np.array([1.5, 2.5], "f4")
        source = peer.write(self.path("source.oinf"), {"x": values, **tensors})
        self.assert_clean(source)
        middle = self.through_safetensors(source)
        self.assertEqual(middle.names(), ["x"])
        self.assert_values(middle.tensors["x"], values)
        shown = {t["name"]: t for t in self.inspect(source, "--values")["tensors"]}
        for name, shape in shapes.items():
            tensor = shown[f"d.{name}"]
            self.assertEqual((tensor["encoding"], tensor["shape"]), (kind, list(shape)))
            self.assertIsNone(tensor["bytes"])
            self.assertNotIn("first", tensor)

    @for_each(["f64", "f32", "f16", "bf16", "f8"])
    def test_not_finite(self, kind):
        """The bytes are kept; the package reads the NaN of an f8 as infinity, so its values are
        not asked."""
        array = np.array([1.0, np.nan, np.inf, -np.inf], "f4")
        source = peer.write(self.path("source.oinf"), {"x": peer.spec(kind, array)})
        middle = self.through_safetensors(source)
        self.assert_values(middle.tensors["x"], array)
        self.assertEqual([f["severity"] for f in self.findings(source)], ["warning"])

    def test_without_anything(self):
        source = peer.write(self.path("source.oinf"))
        self.assert_clean(source)
        self.assertEqual(self.through_safetensors(source).names(), [])


@expanded
class Metadata(OinfCase):
    def check(self, metadata, shown):
        """The values as `inspect` shows them, and the bytes through safetensors."""
        source = peer.write(self.path("source.oinf"), {}, metadata)
        self.assert_clean(source)
        found = self.inspect(source)["metadata"]
        self.assertEqual(found, shown)
        # To Python 1, 1.0 and True are equal.
        kinds = [{k: type(v) for k, v in values.items()} for values in (found, shown)]
        self.assertEqual(*kinds)
        return self.through_safetensors(source)

    @for_each(peer.TYPES)
    def test_numbers(self, kind):
        values = {f"n.{i:03}": v for i, v in enumerate(peer.VALUES[kind])}
        metadata = {key: peer.scalar(kind, v) for key, v in values.items()}
        self.check(metadata, {key: v.item() for key, v in values.items()})

    @for_each(peer.TYPES)
    def test_arrays(self, kind):
        arrays = {f"a.{i}": peer.shaped(kind, shape) for i, shape in enumerate(peer.SHAPES)}
        metadata = {key: peer.array(kind, a) for key, a in arrays.items()}
        self.check(metadata, {key: a.ravel().tolist() for key, a in arrays.items()})

    def test_arrays_without_a_type_given(self):
        arrays = {
            "floats": ([0.5, 0.25], "f4"),
            "signed": ([-1, 300], "i2"),
            "wide": ([-1, 2**40], "i8"),
            "flags": (np.array([[True], [False]]), "b1"),
            "unsigned": (np.array([1, 70000], "u8"), "u4"),
        }
        metadata = {key: values for key, (values, _) in arrays.items()}
        shown = {k: np.array(v, t).ravel().tolist() for k, (v, t) in arrays.items()}
        self.check(metadata, shown)

    def test_a_long_array(self):
        values = np.arange(1000, dtype="u2")
        self.check({"a": peer.array("u16", values)}, {"a": {"dtype": "u16", "shape": [1000]}})

    def test_texts(self):
        alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
        texts = {f"t.{n}": alphabet[:n] for n in range(1, len(alphabet) + 1)}
        middle = self.check(texts, texts)
        self.assertEqual(middle.metadata, texts)

    def test_booleans(self):
        self.check({"yes": True, "no": False}, {"yes": True, "no": False})

    def test_bitsets(self):
        sizes = [0, 1, 7, 8, 9, 63, 64, 65, 200]
        bits = {f"b.{n:03}": [i * i % 7 < 3 for i in range(n)] for n in sizes}
        packed = {k: _packed(v).hex() for k, v in bits.items()}
        shown = {k: {"bits": len(v), "bytes": packed[k]} for k, v in bits.items()}
        self.check({k: peer.bitset(v) for k, v in bits.items()}, shown)

    def test_not_finite(self):
        values = {"nan": np.nan, "inf": np.inf, "neg": -np.inf}
        for kind in ["f64", "f32", "f16", "bf16", "f8"]:
            metadata = {k: peer.array(kind, [v, 1.0]) for k, v in values.items()}
            numbers = {f"{k}.n": peer.scalar(kind, np.float32(v)) for k, v in values.items()}
            source = peer.write(self.path(f"{kind}/source.oinf"), {}, {**metadata, **numbers})
            middle = self.convert(source, f"{kind}/middle.safetensors")
            self.assert_same_bytes(self.convert(middle, f"{kind}/back.oinf"), source)
            self.assert_same_bytes(self.convert(source, f"{kind}/direct.oinf"), source)

    @for_each(["records.utf8", "name.utf8", "vocabulary.bytes", "attachment.x", "weighbridge"])
    def test_keys_that_mean_something_to_the_program(self, key):
        """Files of others may use the names under which the program keeps what OINF can't say."""
        for n, value in enumerate([b"plain", "é".encode(), b"\xff\xfe", b"", b"[]", b"{}"]):
            array = peer.array("u8", np.frombuffer(value, "u1"))
            source = peer.write(self.path(f"{n}/source.oinf"), {}, {key: array, "name": "x"})
            self.assert_clean(source)
            middle = self.convert(source, f"{n}/middle.safetensors")
            self.assert_same_bytes(self.convert(middle, f"{n}/back.oinf"), source)
            self.assert_same_bytes(self.convert(source, f"{n}/direct.oinf"), source)


class Whole(OinfCase):
    def test_size_variables(self):
        sizevars = {"B": 0, "D": 1, "long-name.with_all": 2**32, "Z": 2**64 - 1, "a": 493037664165}
        source = peer.write(self.path("source.oinf"), sizevars=sizevars)
        self.assert_clean(source)
        self.assertEqual(self.inspect(source)["sizevars"], sizevars)
        self.through_safetensors(source)

    def test_everything_in_one_file(self):
        arrays = {n: (k, a) for k in peer.TYPES for n, a in peer.tensors_of(k).items()}
        tensors = {name: peer.spec(kind, a) for name, (kind, a) in arrays.items()}
        tensors["declared"] = peer.declared("f16", (4, 9))
        metadata = {f"n.{k}": peer.scalar(k, peer.VALUES[k][1]) for k in peer.TYPES}
        metadata |= {f"a.{k}": peer.array(k, peer.VALUES[k]) for k in peer.TYPES}
        metadata |= {"text": "clamp_up", "bits": peer.bitset([True, False, True] * 5)}
        sizevars = {"B": 1024, "D": 384}
        source = peer.write(self.path("source.oinf"), tensors, metadata, sizevars)
        self.assert_clean(source)
        middle = self.through_safetensors(source)
        self.assertEqual(middle.names(), sorted(arrays))
        for name, (_, expected) in arrays.items():
            self.assert_values(middle.tensors[name], expected, name)

    def test_names_are_sorted_as_the_package_sorts_them(self):
        names = ["b", "a.b", "a-b", "a_b", "aB", "ab", "A", "a1", "a10", "a2", ".", "_", "-", "0"]
        tensors = {name: np.array([i], "i4") for i, name in enumerate(names)}
        metadata = {name: f"v{i}" for i, name in enumerate(names)}
        sizevars = {name: i for i, name in enumerate(names)}
        source = peer.write(self.path("source.oinf"), tensors, metadata, sizevars)
        self.assert_clean(source)
        self.through_safetensors(source)
