"""Files that others changed after the program wrote them.

The program keeps what a format can't say in one metadata entry of safetensors. Tools that edit the
tensors copy that entry along, so that it may tell of types, shapes and tensors that are no more. What
stands in the file then has to win, or the conversion has to be refused: never other values.
"""

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

import oinf_peer as peer
from common import SafeTensors, expanded, for_each
from rows_peer import RowsCase, decoded, meta_of, nearest, records_of, unit_rows

# Values that the type before the widening can't hold.
OUTSIDE = {
    "i4": [8, -9],
    "i2": [2, -3],
    "i1": [1, -2],
    "u4": [16, 255],
    "u2": [4, 200],
    "u1": [2, 255],
    "t2": [2, -2],
    "t1": [0, 2],
}


class EditedCase(RowsCase):
    def edit(self, path, **changes):
        """The file with tensors replaced, added, or removed (None), and its metadata as it was."""
        with safe_open(str(path), framework="np") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        tensors |= changes
        edited = self.path("edited.safetensors")
        save_file({n: a for n, a in tensors.items() if a is not None}, edited, metadata)
        return edited

    def assert_kept_or_refused(self, edited, target, expected):
        """Either all values arrive, or exit code 2 says that they would not."""
        target = self.path(target)
        done = self.run_to_the_end("convert", edited, target)
        if done.returncode == 2:
            self.assertFalse(target.exists())
            return
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assert_clean(target)
        found = SafeTensors(self.convert(target, "found.safetensors", "--force"))
        self.assertEqual(found.names(), sorted(expected))
        for name, array in expected.items():
            self.assert_values(found.tensors[name], array, name)


@expanded
class FromOinf(EditedCase):
    def middle(self, tensors):
        source = peer.write(self.path("source.oinf"), tensors, {"k": "v"}, {"B": 1})
        return self.convert(source, "middle.safetensors")

    @for_each(OUTSIDE)
    def test_values_that_the_old_type_lacks(self, kind):
        middle = self.middle({"x": peer.spec(kind, peer.VALUES[kind])})
        for value in OUTSIDE[kind]:
            with self.subTest(value=value):
                array = peer.VALUES[kind].copy()
                array[1] = value
                edited = self.edit(middle, x=array)
                self.assert_kept_or_refused(edited, f"{value}.oinf", {"x": array})

    @for_each(OUTSIDE)
    def test_values_that_the_old_type_has(self, kind):
        """These still become the packed type."""
        middle = self.middle({"x": peer.spec(kind, peer.VALUES[kind])})
        array = np.roll(peer.VALUES[kind], 1)
        target = self.convert(self.edit(middle, x=array), "target.oinf")
        expected = peer.write(
            self.path("expected.oinf"), {"x": peer.spec(kind, array)}, {"k": "v"}, {"B": 1}
        )
        self.assert_same_bytes(target, expected)

    def test_other_shapes_types_and_tensors(self):
        middle = self.middle({n: np.arange(3, dtype="f4") for n in ["a", "b", "c"]})
        changes = {
            "a": np.arange(6, dtype="f8").reshape(2, 3),
            "b": np.array([True, False]),
            "new": np.arange(4, dtype="u2"),
        }
        expected = {**changes, "c": np.arange(3, dtype="f4")}
        self.assert_kept_or_refused(self.edit(middle, **changes), "changed.oinf", expected)
        left = {"b": np.arange(3, dtype="f4")}
        self.assert_kept_or_refused(self.edit(middle, a=None, c=None), "removed.oinf", left)

    def test_a_packed_tensor_becomes_another_kind(self):
        middle = self.middle({"x": peer.spec("u4", peer.VALUES["u4"])})
        for n, array in enumerate([np.array([0.5, 3], "f4"), np.arange(4, dtype="i8")]):
            self.assert_kept_or_refused(self.edit(middle, x=array), f"{n}.oinf", {"x": array})

    def test_a_declared_tensor_gets_data(self):
        middle = self.middle({"d": peer.declared("f16", (2,)), "x": np.ones(2, "f4")})
        data = np.array([1.5, 2.5], "f4")
        edited = self.edit(middle, d=data)
        self.assert_kept_or_refused(edited, "target.oinf", {"d": data, "x": np.ones(2, "f4")})


@expanded
class FromI8Bin(EditedCase):
    def setUp(self):
        super().setUp()
        self.old = nearest(unit_rows(6, 64, seed=12))
        source = self.export(self.old, meta_of(self.old, records_of(6)))
        self.middle = self.convert(source, "middle.safetensors")
        [self.name] = SafeTensors(self.middle).names()
        self.path("out/x")

    def to_i8bin(self, values, *options):
        edited = self.edit(self.middle, **{self.name: values})
        arguments = ["convert", edited, self.path("out/embeddings.i8bin"), *options]
        return self.run_to_the_end(*arguments)

    def test_other_codes(self):
        codes = np.roll(self.old, 1)
        done = self.to_i8bin(decoded(codes))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.path("out/embeddings.i8bin").read_bytes(), codes.tobytes())

    @for_each(["scaled", "between", "larger", "nan", "zero"])
    def test_values_that_are_no_codes(self, kind):
        """They are new values: precision is a loss again, and rows have to be unit vectors."""
        values = decoded(self.old)
        if kind == "scaled":
            values *= np.float32(0.5)
        elif kind == "between":
            values += np.float32(0.003)
        elif kind == "larger":
            values[2, 3] = 1.5
        elif kind == "nan":
            values[2, 3] = np.nan
        else:
            values[2] = np.float32(0.4) / 127
        done = self.to_i8bin(values)
        self.assertEqual(done.returncode, 2, f"{done.stdout}{done.stderr}")
        self.assertFalse(self.path("out/embeddings.i8bin").exists())

    def test_fewer_rows(self):
        done = self.to_i8bin(decoded(self.old[:4]))
        self.assertEqual(done.returncode, 2, f"{done.stdout}{done.stderr}")
