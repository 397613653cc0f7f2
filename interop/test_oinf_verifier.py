"""OINF that the program writes, read by the verifier of `openinfer-oinf`; and what both print."""

import re

import numpy as np
import oinf_verify
from oinf_format import format_scalar, format_values
from safetensors.numpy import save_file

import oinf_peer as peer
from common import Case, SafeTensors, embd_stream, expanded, for_each, printed


def tame(kind, shape):
    """Values whose statistics the verifier can compute: it fails on ranges that overflow."""
    random = np.random.default_rng(len(shape) * 100 + int(np.prod(shape, dtype=int)))
    if kind in ("f64", "f32", "f16", "bf16"):
        return random.normal(size=shape) * 10
    if kind == "f8":
        return random.choice([0.0, 1.0, 2.5, -3.0, 40.0, -0.125], size=shape)
    return random.choice(peer.VALUES[kind], size=shape)


class VerifierCase(Case):
    def verified(self, path):
        """What the package's verifier prints; it throws where it does not accept the file."""
        return printed(oinf_verify.parse_file, str(path))

    def inspected(self, path):
        """What the program prints behind the line about the file and the empty one."""
        text = self.run_program("inspect", "--stats", path).stdout.decode()
        return "".join(text.splitlines(keepends=True)[2:])

    def assert_verified(self, path, arrays):
        """The verifier accepts the file and shows each of these tensors with its values."""
        self.assert_clean(path)
        text = self.verified(path)
        for name, (kind, array) in arrays.items():
            dims = ", ".join(map(str, array.shape))
            if array.size == 0:
                line = f"{name}: {kind}[{dims}] -- uninitialized"
            elif array.size == 1:
                line = f"{name}: {kind} = {format_scalar(array.item())}"
            else:
                line = f"{name}: {kind}[{dims}] = {format_values(array)}"
            self.assertIn(f"\n{line}\n", "\n" + text)
        return text


@expanded
class SameText(VerifierCase):
    @for_each(peer.TYPES)
    def test_tensors(self, kind):
        shapes = [(), (1,), (9,), (0,), (10,), (11,), (40,)]
        if kind != "bool":
            # The verifier fails on the histogram of such a bool tensor.
            shapes += [(3, 4), (2, 3, 4), (7, 2), (12, 11), (2, 0), (1, 1)]
        tensors = {"x".join(map(str, s)) or "s": peer.spec(kind, tame(kind, s)) for s in shapes}
        source = peer.write(self.path("source.oinf"), tensors, sizevars={"B": 3})
        texts = [self.inspected(source), self.verified(source)]
        if np.dtype(peer.VALUES[kind].dtype).itemsize * 8 != int(re.sub(r"\D", "", kind) or 8):
            # The verifier counts the bytes of the type that it decodes to, we count those stored.
            texts = [re.sub(r"nbytes: \d+, ", "", t) for t in texts]
        self.assertEqual(*texts)

    @for_each(peer.TYPES)
    def test_metadata(self, kind):
        values = peer.VALUES[kind]
        metadata = {f"n.{i:03}": peer.scalar(kind, v) for i, v in enumerate(values)}
        metadata |= {f"a.{i}": peer.array(kind, peer.shaped(kind, s))
                     for i, s in enumerate([(1,), (3,), (10,), (11,), (3, 2), (2, 3, 2)])}  # fmt: skip
        source = peer.write(self.path("source.oinf"), {}, metadata)
        self.assertEqual(self.inspected(source), self.verified(source))

    def test_other_metadata(self):
        bits = {f"b.{n:02}": peer.bitset([i % 3 == 0 for i in range(n)]) for n in (0, 1, 8, 9, 70)}
        metadata = {"yes": True, "no": False, "text": "clamp_up-1.0", **bits}
        tensors = {"d": peer.declared("f16", (4, 9)), "e": peer.declared("t1", (0, 2))}
        sizevars = {"B": 0, "Z": 2**64 - 1}
        source = peer.write(self.path("source.oinf"), tensors, metadata, sizevars)
        self.assertEqual(self.inspected(source), self.verified(source))


class FromOthers(VerifierCase):
    def test_safetensors(self):
        kinds = ["f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"]
        arrays = {}
        for kind in kinds:
            for shape in [(), (1,), (4,), (11,), (0,)] + [(3, 5), (2, 3, 2)] * (kind != "bool"):
                name = f"{kind}-{'x'.join(map(str, shape)) or 's'}"
                arrays[name] = (kind, tame(kind, shape).astype(peer.VALUES[kind].dtype))
        source = self.path("source.safetensors")
        metadata = {"format": "np", "name": "a/b", "when": "2025-01-16T12:00:00Z"}
        save_file({n: np.ascontiguousarray(a) for n, (_, a) in arrays.items()}, source, metadata)
        target = self.convert(source, "target.oinf")
        text = self.assert_verified(target, arrays)
        # A text outside OINF's alphabet goes as its bytes.
        self.assertIn('format: str = "np"\n', text)
        self.assertIn("name.utf8: u8[3] = { 97, 47, 98 }\n", text)
        self.assertIn("when.utf8: u8[20] = ", text)
        self.assertEqual(self.inspect(target)["metadata"], metadata)

    def test_embd(self):
        random = np.random.default_rng(5)
        arrays = {
            "embeddings.word_embeddings.weight": random.normal(size=(3, 4)).astype("f4"),
            "encoder.layer.0.output.dense.bias": random.normal(size=11).astype("f4"),
        }
        source = embd_stream(self.path("source.weights"), arrays, ["a", "é", "##b"])
        target = self.convert(source, "target.oinf")
        text = self.assert_verified(target, {n: ("f32", a) for n, a in arrays.items()})
        self.assertIn("vocabulary.bytes: u8[6] = { 97, 195, 169, 35, 35, 98 }\n", text)
        self.assertIn("vocabulary.ends: u64[3] = { 1, 3, 6 }\n", text)

    def test_embd_sample(self):
        """The indexed layout, with metadata and vocabulary, of the program's own sample."""
        self.run_program("quickstart", self.folder / "samples")
        source = self.folder / "samples" / "tiny.weights"
        target = self.convert(source, "target.oinf")
        expected = SafeTensors(self.convert(source, "expected.safetensors"))
        found = SafeTensors(self.convert(target, "found.safetensors"))
        self.assertGreater(len(expected.names()), 5)
        for name, array in expected.tensors.items():
            self.assert_values(found.tensors[name], array, name)
        self.assertEqual(found.metadata, expected.metadata)
        self.assertEqual(found.hub["vocabulary"], expected.hub["vocabulary"])
        self.assertEqual(set(expected.types.values()), {"F32"})
        self.assert_verified(target, {n: ("f32", a) for n, a in expected.tensors.items()})

    def test_npy(self):
        for kind in ["f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"]:
            array = tame(kind, (5, 7)).astype(peer.VALUES[kind].dtype)
            np.save(self.path(f"{kind}.npy"), array)
            target = self.convert(self.path(f"{kind}.npy"), f"{kind}.oinf")
            [name] = [t["name"] for t in self.inspect(target)["tensors"]]
            self.assert_verified(target, {name: (kind, array)})

    def test_bf16(self):
        """Narrowed by the program, read by the verifier."""
        values = np.random.default_rng(6).normal(size=(4, 9)).astype("f4")
        save_file({"x": values}, self.path("source.safetensors"))
        options = ["--dtype", "bf16", "--allow-loss"]
        target = self.convert(self.path("source.safetensors"), "target.oinf", *options)
        # To the nearest, ties to even, as the package itself does it.
        expected = peer.write(self.path("expected.oinf"), {"x": peer.spec("bf16", values)})
        self.assert_same_bytes(target, expected)
        self.verified(target)

    def test_names_outside_the_alphabet(self):
        values = np.array([1.0, 2.0], "f4")
        save_file({"a/b": values}, self.path("source.safetensors"))
        arguments = ["convert", self.path("source.safetensors"), self.path("target.oinf")]
        self.refused(*arguments, code=2, saying=["a/b", "--rename"])
        self.run_program(*arguments, "--rename", "a/b=a.b")
        self.assert_verified(self.path("target.oinf"), {"a.b": ("f32", values)})
