"""Quantized MCF tensors made by the peer, out of random codes and scales: the program reads the
very values of the formulas, and writes the very bytes again."""

import numpy as np
from safetensors.numpy import load_file

from common import expanded, for_each
from mcf_file import Layout, McfFile, write
from mcf_peer import BLOCK_METHODS, METHODS, Blocks, Whole, largest_code, plain, quantized
from test_mcf import McfCase

# Whole blocks and not, whole super blocks and not, less than a block; payloads of odd sizes.
SHAPES = [(1, 1), (3, 31), (2, 32), (5, 33), (4, 224), (2, 256), (3, 257), (7, 300), (1, 1000)]
ODD_ZEROS = [0.5, -3.25, 1e-3, -0.0, 2.0**25, -1234567.75]
WHOLE_ZEROS = [0.0, 7.0, -128.0, 255.0, 8388607.0]


def random_blocks(method, shape, seed=0):
    """Codes all over their range, scales of any size, shares from 1 to 63."""
    rng = np.random.default_rng([seed, METHODS[method], *shape])
    rows, cols = shape
    most = largest_code(METHODS[method])
    count = -(-cols // 32)
    codes = rng.integers(-most, most + 1, (rows, count * 32))
    codes[:, cols:] = 0
    if METHODS[method] < 0x30:
        return Blocks(cols, codes, random_f16(rng, (rows, count)))
    shares = rng.integers(1, 64, (rows, count))
    return Blocks(cols, codes, random_f16(rng, (rows, -(-count // 8))), shares)


def random_f16(rng, shape):
    """Any finite f16 but zero, negative and without a leading one too."""
    bits = rng.integers(0, 2**16, shape).astype("<u2")
    bits[bits & 0x7C00 == 0x7C00] &= 0x3FF
    return (bits | 1).view("<f2")


def random_whole(method, shape, zero=None):
    """Weights leave out the most negative code."""
    rng = np.random.default_rng([METHODS[method], *shape])
    most = largest_code(METHODS[method])
    codes = rng.integers(-most - (zero is not None), most + 1, shape)
    scale = np.float32(rng.uniform(1e-3, 2))
    return Whole(codes, scale, None if zero is None else np.float32(zero))


class QuantizedCase(McfCase):
    def check(self, tensors, contents, as_codes=()):
        """Clean, with the right values in `safetensors`, and the same bytes there and back. Codes
        that the values don't tell travel as codes, unless f32 is asked for."""
        source = write(self.path("source.mcf"), tensors)
        self.assert_clean(source)
        file = McfFile(source)
        self.through_safetensors(source)
        usual = load_file(self.folder / "middle.safetensors")
        asked = load_file(self.convert(source, "f32.safetensors", "--dtype", "f32", "--allow-loss"))
        shown = {t["name"]: t for t in self.inspect(source)["tensors"]}
        for name, content in contents.items():
            values = content.values()
            self.assert_same_floats(file.tensors[name].values(), values, name)
            self.assert_same_floats(asked[name], values, name)
            self.assertEqual(shown[name]["shape"], list(values.shape))
            if name in as_codes:
                self.assertIn(usual[name].dtype, (np.int8, np.uint8))
            else:
                self.assert_same_floats(usual[name], values, name)
        self.assertGreater(len(contents), 0)
        return shown

    def assert_same_floats(self, found, expected, name):
        """To the last bit, the sign of zero included."""
        found, expected = np.ascontiguousarray(found), np.ascontiguousarray(expected)
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape), name)
        np.testing.assert_array_equal(found.view("u4"), expected.view("u4"), err_msg=name)


@expanded
class InBlocks(QuantizedCase):
    @for_each(BLOCK_METHODS)
    def test_values(self, method):
        contents = {f"w.{r}x{c}": random_blocks(method, (r, c)) for r, c in SHAPES}
        tensors = [quantized(name, method, content) for name, content in contents.items()]
        shown = self.check(tensors, contents)
        self.assertEqual({t["encoding"] for t in shown.values()}, {method})
        self.assertEqual(len(shown), len(SHAPES))

    @for_each(BLOCK_METHODS)
    def test_every_code_and_share(self, method):
        most = largest_code(METHODS[method])
        content = random_blocks(method, (64, 8 * 32))
        content.codes[:] = np.resize(np.arange(-most, most + 1), content.codes.shape)
        if content.shares is not None:
            content.shares[:] = np.arange(64)[:, None]
        content.scales = np.full_like(content.scales, 0.375)
        self.assertEqual(len(np.unique(content.codes)), 2 * most + 1)
        # With a share of 0 all values are 0, whatever the codes are.
        as_codes = ["w"] if content.shares is not None else []
        self.check([quantized("w", method, content)], {"w": content}, as_codes)

    @for_each(BLOCK_METHODS)
    def test_bounds_are_kept(self, method):
        """Whatever they are: they say where scales came from, and no value depends on them."""
        bounds = [(-1.0, 1.0), (-0.0, 0.0), (-3.5, 0.25), (0.0, 0.0), (1e-30, 3e38)]
        contents = {f"w{i}": random_blocks(method, (2, 40), i) for i in range(len(bounds))}
        tensors = [quantized(n, method, c, b) for (n, c), b in zip(contents.items(), bounds)]
        self.check(tensors, contents)
        back = McfFile(self.folder / "back.mcf")
        for name, clips in zip(contents, bounds):
            self.assertEqual(back.tensors[name].clips, [np.float32(c) for c in clips])

    @for_each(BLOCK_METHODS)
    def test_damage(self, method):
        """A code, a share or a padding that a good file has not."""
        kind = METHODS[method]
        wrong = {"MCF-34": lambda c: c.codes.__setitem__((1, 3), -largest_code(kind) - 1)}
        wrong["MCF-36"] = lambda c: c.codes.__setitem__((0, 40), 1)
        wrong["MCF-35"] = lambda c: c.scales.__setitem__((1, 0), np.float16(np.inf))
        if kind >= 0x30:
            wrong["MCF-33"] = lambda c: c.shares.__setitem__((1, 1), 64)
        self.assertEqual(len(wrong), 4 if kind >= 0x30 else 3)
        for rule, damage in wrong.items():
            content = random_blocks(method, (3, 40))
            damage(content)
            tensor = quantized("w", method, content, (-1.0, 1.0))
            path = write(self.path(f"{rule}.mcf"), [tensor])
            result = self.run_program("verify", "--json", path, code=1).stdout.decode()
            self.assertIn(f'"{rule}"', result)


@expanded
class Whole8And4(QuantizedCase):
    @for_each(["int8", "int4"])
    def test_weights(self, method):
        contents = {f"w.{r}x{c}": random_whole(method, (r, c)) for r, c in SHAPES}
        tensors = [quantized(name, method, c) for name, c in contents.items()]
        self.check(tensors, contents)

    @for_each(["int8", "int4"])
    def test_activations(self, method):
        """Zero points that are whole numbers and those that are none, and tensors of any rank."""
        zeros = WHOLE_ZEROS + ODD_ZEROS
        contents = {
            f"a.{i}.{shape}": random_whole(method, shape, zero)
            for i, zero in enumerate(zeros)
            for shape in [(), (1,), (13,), (3, 5), (2, 3, 7)]
        }
        self.assertEqual(len(contents), 11 * 5)
        tensors = [quantized(name, method, c, (-1.0, 1.0)) for name, c in contents.items()]
        # So far from zero f32 has no room for the codes; and only whole numbers lead back to them.
        odd = {i for i, zero in enumerate(zeros) if i >= len(WHOLE_ZEROS) or zero > 1e6}
        self.check(tensors, contents, {n for n in contents if int(n.split(".")[1]) in odd})
        self.assertEqual(len(McfFile(self.folder / "back.mcf").tensors), 55)

    @for_each(["int8", "int4"])
    def test_without_a_scale(self, method):
        """A known packer leaves the scale out: raw codes, never values."""
        content = random_whole(method, (6, 10))
        codes = content.codes if method == "int8" else content.codes + 8
        tensor = quantized("table", method, content)
        tensor.payload = Whole(codes, content.scale).payload(METHODS[method])[64:]
        tensor.clips = None
        path = write(self.path("source.mcf"), [tensor])
        rules = {f["rule"] for f in self.findings(path)}
        self.assertEqual(rules, {"MCF-31", "MCF-32"})
        self.assert_same_bytes(self.convert(path, "direct.mcf"), path)
        between = self.convert(path, "middle.safetensors")
        self.assert_values(load_file(between)["table"].astype(int), codes)
        self.assert_same_bytes(self.convert(between, "back.mcf"), path)


class Together(QuantizedCase):
    def tensors(self):
        """Every method, and beside it plain tensors."""
        contents = {f"{m}.w": random_blocks(m, (5, 70)) for m in BLOCK_METHODS}
        contents |= {f"{m}.w": random_whole(m, (5, 70)) for m in ("int8", "int4")}
        contents |= {f"{m}.a": random_whole(m, (5, 7, 3), -3.0) for m in ("int8", "int4")}
        tensors = [quantized(name, name.split(".")[0], c) for name, c in contents.items()]
        tensors += [plain("norm", "f32", np.ones(70, "f4")), plain("ids", "i64", np.arange(5))]
        return tensors, contents

    def test_every_method_in_one_file(self):
        tensors, contents = self.tensors()
        self.assertEqual(len(contents), 10)
        self.check(tensors, contents)

    def test_shared_payloads(self):
        tensors, contents = self.tensors()
        for name in list(contents):
            copy = quantized(f"{name}.copy", name.split(".")[0], contents[name])
            copy.same_as = name
            tensors.append(copy)
            contents[copy.name] = contents[name]
        self.check(tensors, contents)
        back = McfFile(self.folder / "back.mcf")
        self.assertEqual(len({t.offset for t in back.tensors.values()}), len(tensors) // 2 + 1)

    def test_other_layouts(self):
        """The same values, with a warning about the places; then the usual layout comes out."""
        layouts = [Layout(sort_index=False, sort_data=False, index_flags=0), Layout(gap=64)]
        for i, layout in enumerate(layouts):
            tensors, contents = self.tensors()
            source = write(self.path(f"{i}/source.mcf"), tensors[::-1], layout=layout)
            self.assert_order_warning(source)
            loaded = load_file(self.convert(source, f"{i}/middle.safetensors"))
            again = self.assert_well_written(self.convert(source, f"{i}/direct.mcf"))
            for name, content in contents.items():
                self.assert_same_floats(loaded[name], content.values(), name)
                self.assert_same_floats(again.tensors[name].values(), content.values(), name)

    def test_other_formats_get_the_values(self):
        tensors, contents = self.tensors()
        source = write(self.path("source.mcf"), tensors)
        for name, content in contents.items():
            out = self.path(f"{name}.npy")
            self.run_program("convert", source, out, "--select", name, "--allow-loss")
            self.assert_same_floats(np.load(out), content.values(), name)
        for kind in ("oinf", "weights"):
            out = self.convert(source, f"out.{kind}", "--exclude", "ids", "--allow-loss")
            loaded = load_file(self.convert(out, f"{kind}.safetensors"))
            for name, content in contents.items():
                self.assert_same_floats(loaded[name], content.values(), name)
