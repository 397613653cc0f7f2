"""NumPy's own files: every arrangement is read, and what is written is what `numpy.save` writes."""

import io
import warnings

import numpy as np
from safetensors.numpy import save_file

import oinf_peer
from common import Case, SafeTensors, expanded, for_each

VALUES = {
    **{k: v for k, v in oinf_peer.VALUES.items() if oinf_peer.STORED[k].lower() == k},
    "c64": np.array([0, 1 + 2j, -1.5j, 3, np.pi * 1j, -0.0, 7 - 7j], np.complex64),
}
VALUES.pop("bf16")
SHAPES = [(), (1,), (7,), (0,), (3, 5), (1, 4), (0, 3), (4, 0), (2, 3, 4), (2, 0, 2), (2, 3, 1, 4)]
ORDERS = [(bytes_, order) for bytes_ in "<>" for order in "CF"]


def shaped(kind, shape):
    return np.resize(VALUES[kind], shape)


def arranged(array, byte_order, order):
    """The same values in another arrangement in memory, which is how they are saved."""
    return np.array(array, dtype=array.dtype.newbyteorder(byte_order), order=order)


def saved(array):
    """What `numpy.save` writes for the array in the plain arrangement."""
    out = io.BytesIO()
    np.save(out, arranged(array, "<", "C"))
    return out.getvalue()


class NpyCase(Case):
    def write(self, array, version=(1, 0), name="source.npy"):
        path = self.path(name)
        with path.open("wb") as file, warnings.catch_warnings():
            # NumPy advises against versions that are not needed.
            warnings.simplefilter("ignore")
            np.lib.format.write_array(file, array, version=version)
        return path

    def check(self, source, expected):
        """Values in safetensors, and the bytes of a new .npy."""
        safe = SafeTensors(self.convert(source, "values.safetensors", "--force"))
        [name] = safe.names()
        self.assertEqual(safe.tensors[name].dtype, expected.dtype)
        self.assert_values(safe.tensors[name], expected, str(source))
        target = self.convert(source, "target.npy", "--force")
        self.assertEqual(target.read_bytes(), saved(expected))
        self.assert_clean(source)
        return safe


@expanded
class Reading(NpyCase):
    @for_each(VALUES)
    def test_shapes(self, kind):
        visited = 0
        for shape in SHAPES:
            expected = shaped(kind, shape)
            for byte_order, order in ORDERS:
                with self.subTest(shape=shape, byte_order=byte_order, order=order):
                    source = self.write(arranged(expected, byte_order, order))
                    self.check(source, expected)
                    visited += 1
        self.assertEqual(visited, len(SHAPES) * 4)

    @for_each(VALUES)
    def test_versions(self, kind):
        expected = shaped(kind, (5, 3))
        for version in [(1, 0), (2, 0), (3, 0)]:
            for byte_order, order in ORDERS:
                with self.subTest(version=version, byte_order=byte_order, order=order):
                    source = self.write(arranged(expected, byte_order, order), version)
                    self.assertEqual(source.read_bytes()[6], version[0])
                    self.check(source, expected)
                    layout = f"version {version[0]}.0"
                    self.assertEqual(self.inspect(source)["layout"], layout)

    @for_each(k for k in VALUES if k != "c64")
    def test_values_shown(self, kind):
        expected = np.resize(VALUES[kind], (3, 5))
        for byte_order, order in ORDERS:
            result = self.inspect(self.write(arranged(expected, byte_order, order)), "--values")
            self.assertEqual(result["format"], "npy")
            [tensor] = result["tensors"]
            self.assertEqual(tensor["encoding"], kind)
            self.assert_shown(tensor, expected)

    @for_each(["u16", "f64"])
    def test_larger_than_one_block(self, kind):
        """Reordering goes block by block; the last one is not full."""
        random = np.random.default_rng(9)
        dtype = VALUES[kind].dtype
        for shape in [(701, 997), (13, 41, 1009)]:
            expected = (random.random(shape) * 60000).astype(dtype)
            for byte_order, order in ORDERS:
                self.check(self.write(arranged(expected, byte_order, order)), expected)

    def test_not_contiguous(self):
        """Views are saved in one order or the other."""
        base = np.arange(120, dtype="f4").reshape(4, 5, 6)
        views = [base[::2], base[:, ::-1], base.transpose(2, 0, 1), base.T, base[1:3, 1:, ::3]]
        for view in views:
            np.save(self.path("source.npy"), view)
            self.check(self.path("source.npy"), np.array(view, order="C"))

    def test_not_finite(self):
        array = np.array([[1, np.nan], [np.inf, -np.inf]], "f4")
        source = self.write(array)
        self.assertEqual([f["severity"] for f in self.findings(source)], ["warning"])
        target = self.convert(source, "target.npy")
        self.assertEqual(target.read_bytes(), saved(array))

    def test_growing_headers(self):
        """NumPy leaves room for the first dimension to grow; the padding depends on the text."""
        for digits in range(1, 8):
            array = np.zeros((10 ** (digits - 1), 1, 1), "u1")
            target = self.convert(self.write(array), "target.npy", "--force")
            self.assertEqual(target.read_bytes(), saved(array))
        for rank in range(1, 33):
            array = np.zeros((1,) * rank, "i2")
            target = self.convert(self.write(array), "target.npy", "--force")
            self.assertEqual(target.read_bytes(), saved(array))

    def test_a_wrong_extension(self):
        source = self.write(np.arange(3), name="source.bin")
        self.assertEqual(self.inspect(source)["format"], "npy")


@expanded
class Writing(NpyCase):
    @for_each(VALUES)
    def test_from_safetensors(self, kind):
        for shape in SHAPES:
            array = shaped(kind, shape)
            save_file({"x": array}, self.path("source.safetensors"))
            target = self.convert(self.path("source.safetensors"), "target.npy", "--force")
            self.assertEqual(target.read_bytes(), saved(array))
            self.assert_values(np.load(target, allow_pickle=False), array)

    @for_each(["bf16", "f8", "i4", "i2", "i1", "u4", "u2", "u1", "t2", "t1"])
    def test_types_that_numpy_lacks(self, kind):
        """They are widened, which loses nothing."""
        values = oinf_peer.VALUES[kind]
        tensors = {"x": oinf_peer.spec(kind, values)}
        source = oinf_peer.write(self.path("source.oinf"), tensors)
        target = self.convert(source, "target.npy")
        loaded = np.load(target, allow_pickle=False)
        self.assert_values(loaded, values)
        self.assertEqual(loaded.dtype.kind, values.dtype.kind)

    def test_losses(self):
        arrays = {"a": np.arange(3, dtype="f4"), "b": np.arange(4, dtype="f4")}
        save_file(arrays, self.path("source.safetensors"), {"k": "v"})
        arguments = ["convert", self.path("source.safetensors"), self.path("target.npy")]
        # Two tensors, and metadata: neither has a place in .npy.
        self.refused(*arguments, code=2, saying="--select")
        self.refused(*arguments, "--select", "b", code=2, saying=["k", "--allow-loss"])
        self.assertFalse(self.path("target.npy").exists())
        self.run_program(*arguments, "--select", "b", "--allow-loss")
        self.assertEqual(self.path("target.npy").read_bytes(), saved(arrays["b"]))


REFUSED = {
    "structured": (np.zeros(3, [("x", "f4"), ("y", "i4")]), "structured"),
    "nested": (np.zeros(3, [("x", "f4", (2, 2))]), "structured"),
    "objects": (np.array([{}, None], object), "objects"),
    "text": (np.array(["a", "bé"]), "strings"),
    "bytes": (np.array([b"a", b"bc"]), "byte strings"),
    "datetime": (np.array(["2025-01-16"], "M8[D]"), "date"),
    "timedelta": (np.array([5], "m8[s]"), "duration|timedelta"),
    "complex128": (np.array([1 + 2j]), "complex"),
    "void": (np.zeros(3, "V16"), "raw bytes|void"),
    "longdouble": (np.zeros(3, np.longdouble), "long double"),
}


@expanded
class Refusals(NpyCase):
    @for_each(REFUSED)
    def test_kinds(self, kind):
        array, word = REFUSED[kind]
        if kind == "longdouble" and array.dtype.itemsize == 8:
            self.skipTest("a long double is an f64 here")
        np.save(self.path("source.npy"), array, allow_pickle=True)
        source, target = self.path("source.npy"), self.path("target.safetensors")
        for arguments in [("inspect", source), ("convert", source, target)]:
            self.assertRegex(self.refused(*arguments, code=3), word)
        self.run_program("verify", source, code=1)
        self.assertFalse(target.exists())

    def test_sizes(self):
        good = self.write(np.arange(6, dtype="f4")).read_bytes()
        for name, data in {"cut": good[:-1], "header": good[:60], "longer": good + b"\0"}.items():
            path = self.path(f"{name}.npy")
            path.write_bytes(data)
            self.refused("inspect", path, code=3)
