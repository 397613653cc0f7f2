"""What all tests need: running the program, reading its files without it, and tests from tables."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("WEIGHBRIDGE_BIN", ROOT / "target" / "release" / "weighbridge"))


def data_folder(kind):
    """A folder of test data, which is no part of the project: named by WEIGHBRIDGE_CONFORMANCE or
    WEIGHBRIDGE_REFERENCE, otherwise beside the project."""
    named = os.environ.get(f"WEIGHBRIDGE_{kind.upper()}")
    return Path(named) if named else ROOT.parent / "shared" / kind


def needs(folder):
    """Marks tests that are skipped without a folder, or fail with WEIGHBRIDGE_REQUIRE=1."""
    if folder.is_dir():
        return lambda tests: tests
    reason = f"no folder {folder}"
    if os.environ.get("WEIGHBRIDGE_REQUIRE") == "1":
        raise FileNotFoundError(f"WEIGHBRIDGE_REQUIRE=1, but {reason}")
    return unittest.skip(reason)


# Types that numpy has; the others are decoded below.
NUMPY_TYPES = {
    "BOOL": np.dtype(bool),
    "U8": np.dtype("<u1"),
    "I8": np.dtype("<i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
}


def bf16_to_f32(bits):
    """A bf16 is the upper half of an f32."""
    return (np.asarray(bits, "<u2").astype("<u4") << 16).view("<f4")


def e5m2_to_f32(bits):
    """An E5M2 is the upper half of an f16."""
    return (np.asarray(bits, "u1").astype("<u2") << 8).view("<f2").astype("<f4")


def e4m3_to_f32(bits):
    """E4M3 (the "fn" kind): no infinity, and NaN only where all bits but the sign are set."""
    bits = np.asarray(bits, "u1").astype(int)
    exponent, mantissa = (bits >> 3) & 15, (bits & 7) / 8
    size = np.where(exponent == 0, np.ldexp(mantissa, -6), np.ldexp(1 + mantissa, exponent - 7))
    size = np.where(bits & 127 == 127, np.nan, size)
    return np.where(bits & 128, -size, size).astype("<f4")


DECODED_TYPES = {
    "BF16": ("<u2", bf16_to_f32),
    "F8_E5M2": ("u1", e5m2_to_f32),
    "F8_E4M3": ("u1", e4m3_to_f32),
}


class SafeTensors:
    """A safetensors file, read by hand: numpy alone lacks some of the types, and a reader that
    shares nothing with either side notices where both are wrong in the same way."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        self.metadata = header.pop("__metadata__", {})
        # What the program adds to be able to restore the source, and long parts of it as tensors.
        self.hub = json.loads(self.metadata.pop("weighbridge", "null"))
        self.types = {name: entry["dtype"] for name, entry in header.items()}
        self.raw = {}
        self.tensors = {}
        for name, entry in header.items():
            start, end = entry["data_offsets"]
            raw = data[8 + length + start : 8 + length + end]
            dtype = entry["dtype"]
            if dtype in NUMPY_TYPES:
                values = np.frombuffer(raw, NUMPY_TYPES[dtype])
            else:
                stored, decode = DECODED_TYPES[dtype]
                values = decode(np.frombuffer(raw, stored))
            self.raw[name] = raw
            self.tensors[name] = values.reshape(entry["shape"])

    def names(self):
        """The tensors, without those that carry parts of the program's own entry."""
        return sorted(n for n in self.tensors if not n.startswith("weighbridge/"))


class Case(unittest.TestCase):
    """A test with a folder of its own and the program at hand."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="weighbridge-interop-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def run_to_the_end(self, *arguments):
        """Runs it, whatever the exit code will be."""
        command = [str(PROGRAM), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)

    def run_program(self, *arguments, code=0):
        """Runs it, and demands this exit code."""
        done = self.run_to_the_end(*arguments)
        said = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, code, f"exit code of {' '.join(done.args)}\n{said}")
        return done

    def refused(self, *arguments, code, saying=()):
        """The message of a command that must fail; `saying` are words that it must hold."""
        done = self.run_program(*arguments, code=code)
        message = done.stderr.decode()
        for word in [saying] if isinstance(saying, str) else saying:
            self.assertIn(word, message)
        return message

    def convert(self, source, target, *options):
        """The path of the converted file."""
        target = self.path(target)
        self.run_program("convert", source, target, *options)
        return target

    def inspect(self, path, *options):
        return json.loads(self.run_program("inspect", "--json", *options, path).stdout)

    def findings(self, path, *options):
        """What `verify` finds in a file without errors."""
        result = json.loads(self.run_program("verify", "--json", *options, path).stdout)
        self.assertTrue(result["ok"])
        return result["findings"]

    def assert_clean(self, path, *options):
        self.assertEqual(self.findings(path, *options), [])

    def assert_same_bytes(self, found, expected):
        found, expected = (Path(p).read_bytes() for p in (found, expected))
        if found != expected:
            pairs = enumerate(zip(found, expected))
            shorter = min(len(found), len(expected))
            at = next((i for i, (a, b) in pairs if a != b), shorter)
            self.fail(f"{len(found)} and {len(expected)} bytes; they differ from byte {at} on")

    def assert_values(self, found, expected, name=""):
        """The same shape and the same values, NaN and the sign of zero included."""
        found, expected = np.asarray(found), np.asarray(expected)
        self.assertEqual(found.shape, expected.shape, name)
        np.testing.assert_array_equal(found, expected, err_msg=name)
        if found.dtype.kind == "f" and expected.dtype.kind == "f":
            signs = [np.signbit(a) & ~np.isnan(a) for a in (found, expected)]
            np.testing.assert_array_equal(*signs, err_msg=f"{name}: signs")

    def assert_shown(self, tensor, expected):
        """The first and last values in `inspect --json --values`. Python compares whole numbers
        and floats exactly, so that a rounded i64 is not taken for the real one."""
        flat = [v.item() for v in np.asarray(expected).ravel()]
        self.assertEqual(tensor["shape"], list(np.shape(expected)))
        self.assertEqual(tensor["first"], flat[:5], tensor["name"])
        self.assertEqual(tensor["last"], flat[-5:], tensor["name"])


def embd_stream(path, tensors, tokens):
    """An EMBD file in the layout of its reference converter: f32 tensors, then the vocabulary."""
    u32 = lambda n: n.to_bytes(4, "little")
    out = [b"EMBD", u32(1), u32(len(tensors))]
    for name, array in tensors.items():
        out += [u32(len(name.encode())), name.encode(), u32(array.ndim), *map(u32, array.shape)]
        out.append(array.astype("<f4").tobytes())
    out.append(u32(len(tokens)))
    for token in tokens:
        out += [u32(len(token.encode())), token.encode()]
    Path(path).write_bytes(b"".join(out))
    return path


def printed(function, *arguments):
    """What a function prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*arguments)
    return out.getvalue()


def for_each(cases):
    """Marks a test that is to be run for each of some values; see `expanded`."""

    def mark(function):
        function.cases = list(cases)
        return function

    return mark


def expanded(cls):
    """Makes one test out of each case, so that each is named, counted and can be run alone."""
    for name, function in list(vars(cls).items()):
        if not hasattr(function, "cases"):
            continue
        delattr(cls, name)
        for case in function.cases:

            def test(self, function=function, case=case):
                function(self, case)

            label = "".join(c if c.isalnum() else "_" for c in str(case))
            key = f"{name}_{label}"
            assert key not in vars(cls), key
            test.__doc__ = function.__doc__
            setattr(cls, key, test)
    return cls
