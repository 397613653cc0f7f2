"""MCF files, read and written with numpy alone.

No package for this format can be installed, so this is a second implementation, made from the
format's description and sharing nothing with the program. The reader demands what a good file has
and fails where a file has it not; the writer makes any file, odd ones included.
"""

import struct
from dataclasses import dataclass, field

import numpy as np

from common import bf16_to_f32

MODEL_INFO, QUANT_INFO, TENSOR_INDEX, TENSOR_DATA = 1, 2, 3, 4
RESOURCES = {
    0x100: "config.json",
    0x101: "generation_config.json",
    0x102: "tokenizer.json",
    0x103: "tokenizer_config.json",
    0x104: "vocab.json",
    0x105: "merges.txt",
}
# numpy has no bf16; arrays of its bits stand for it.
PLAIN = {
    1: "<f4", 2: "<f2", 3: "<u2", 4: "<f8", 5: "<i1", 6: "<u1",
    7: "<i2", 8: "<u2", 9: "<i4", 10: "<u4", 11: "<i8", 12: "<u8",
}  # fmt: skip
PLAIN_NAMES = {
    "f32": 1, "f16": 2, "bf16": 3, "f64": 4, "i8": 5, "u8": 6,
    "i16": 7, "u16": 8, "i32": 9, "u32": 10, "i64": 11, "u64": 12,
}  # fmt: skip
INT8, INT4 = 0x10, 0x11
METHODS = {
    "int8": INT8, "int4": INT4, "q8": 0x20, "q4": 0x21,
    "k6": 0x30, "k4": 0x31, "k3": 0x32, "k2": 0x33,
}  # fmt: skip
BITS = {INT8: 8, INT4: 4, 0x20: 8, 0x21: 4, 0x30: 6, 0x31: 4, 0x32: 3, 0x33: 2}
BLOCK_METHODS = [name for name, kind in METHODS.items() if kind >= 0x20]
WEIGHTS, ACTIVATIONS = 0, 1


def aligned(n, to=64):
    return -(-n // to) * to


def largest_code(kind):
    return 2 ** (BITS[kind] - 1) - 1


def block_sizes(kind):
    return {0x10: (0, 0), 0x20: (32, 0), 0x30: (32, 256)}[kind & 0xF0]


def pack(codes, bits):
    """Signed codes as one stream of bits, the lowest first; what is left of a byte is zero."""
    stream = (np.asarray(codes, int).ravel()[:, None] >> np.arange(bits)) & 1
    return np.packbits(stream.astype("u1"), bitorder="little").tobytes()


def unpack(data, bits, count):
    stream = np.unpackbits(np.frombuffer(data, "u1"), bitorder="little")[: count * bits]
    codes = stream.reshape(count, bits).astype(int) @ (1 << np.arange(bits))
    return np.where(codes < 2 ** (bits - 1), codes, codes - 2**bits)


def regions(kind, shape, domain=WEIGHTS):
    """Sizes of the parts of a quantized payload; each begins at a multiple of 64."""
    if kind in (INT8, INT4):
        count = int(np.prod(shape, dtype=int))
        return [4] * (1 + domain) + [-(-count * BITS[kind] // 8)]
    rows, cols = shape
    blocks = -(-cols // 32)
    codes = rows * blocks * 4 * BITS[kind]
    if kind & 0xF0 == 0x20:
        return [2 * rows * blocks, codes]
    return [2 * rows * -(-blocks // 8), rows * blocks, codes]


def join(parts):
    out = b""
    for part in parts:
        out = out.ljust(aligned(len(out)), b"\0") + part
    return out


def split(payload, sizes):
    """The parts; whatever lies between them is zero, and nothing follows them."""
    parts, at = [], 0
    for size in sizes:
        start = aligned(at)
        assert not any(payload[at:start]), "padding"
        parts.append(payload[start : start + size])
        at = start + size
    assert at == len(payload), f"{len(payload)} bytes instead of {at}"
    return parts


@dataclass
class Whole:
    """One scale for all values; with a zero point for activations."""

    codes: np.ndarray
    scale: np.float32
    zero: np.float32 | None = None

    def payload(self, kind):
        numbers = [self.scale] if self.zero is None else [self.scale, self.zero]
        return join([struct.pack("<f", n) for n in numbers] + [pack(self.codes, BITS[kind])])

    def values(self):
        zero = np.float32(0 if self.zero is None else self.zero)
        return (np.float32(self.scale) * (self.codes.astype("f4") - zero)).astype("f4")


@dataclass
class Blocks:
    """Codes of whole blocks (rows, blocks * 32), a scale for each block or each super block, and
    for super blocks the shares that the blocks have in it."""

    cols: int
    codes: np.ndarray
    scales: np.ndarray
    shares: np.ndarray | None = None

    def payload(self, kind):
        parts = [self.scales.astype("<f2").tobytes()]
        if self.shares is not None:
            parts.append(self.shares.astype("u1").tobytes())
        return join([*parts, pack(self.codes, BITS[kind])])

    def values(self):
        with np.errstate(over="ignore", invalid="ignore"):
            scales = self.scales.astype("f4")
            if self.shares is not None:
                shares = self.shares.astype("f4") / np.float32(32)
                scales = np.repeat(scales, 8, axis=1)[:, : shares.shape[1]] * shares
            return (np.repeat(scales, 32, axis=1) * self.codes.astype("f4"))[:, : self.cols]


def parse(kind, shape, domain, payload):
    """A quantized payload."""
    parts = split(payload, regions(kind, shape, domain))
    if kind in (INT8, INT4):
        count = int(np.prod(shape, dtype=int))
        numbers = [np.frombuffer(p, "<f4")[0] for p in parts[:-1]]
        return Whole(unpack(parts[-1], BITS[kind], count).reshape(shape), *numbers)
    rows, cols = shape
    blocks = -(-cols // 32)
    codes = unpack(parts[-1], BITS[kind], rows * blocks * 32).reshape(rows, blocks * 32)
    scales = np.frombuffer(parts[0], "<f2").reshape(rows, -1)
    shares = np.frombuffer(parts[1], "u1").reshape(rows, blocks) if len(parts) == 3 else None
    return Blocks(cols, codes, scales, shares)


@dataclass
class Tensor:
    """A tensor of a file: its bytes and what is said about them."""

    name: str
    kind: int
    shape: tuple
    payload: bytes
    domain: int = WEIGHTS
    clips: tuple | None = None
    offset: int = 0
    same_as: str | None = None

    def quantized(self):
        return parse(self.kind, self.shape, self.domain, self.payload)

    def raw(self):
        """An array of the stored type; of bits for bf16."""
        return np.frombuffer(self.payload, PLAIN[self.kind]).reshape(self.shape)

    def values(self):
        if self.kind not in PLAIN:
            return self.quantized().values()
        return bf16_to_f32(self.raw()) if self.kind == 3 else self.raw()


def plain(name, kind, array):
    """A tensor of a plain type, by the type's name; for bf16 of its bits."""
    array = np.asarray(array)
    data = array.astype(PLAIN[PLAIN_NAMES[kind]], casting="equiv").tobytes()
    return Tensor(name, PLAIN_NAMES[kind], array.shape, data)


def quantized(name, method, content, clips=None):
    """A tensor out of `Whole` or `Blocks`; without bounds, those that its values have."""
    kind = METHODS[method]
    whole = isinstance(content, Whole)
    shape = content.codes.shape if whole else (content.codes.shape[0], content.cols)
    if clips is None:
        most = np.abs(content.values()).max(initial=0)
        clips = (-most, most)
    domain = ACTIVATIONS if whole and content.zero is not None else WEIGHTS
    return Tensor(name, kind, shape, content.payload(kind), domain, clips)


@dataclass
class ModelInfo:
    """`numbers`: arch, a zero, vocab_size, hidden_size, layer_count, head_count, head_count_kv,
    context_length, train_context, rope_type. Entries are int for u32, float for f32, else bytes."""

    numbers: list = field(default_factory=lambda: [0] * 10)
    rope_freq_base: float = 0.0
    rope_scale: float = 0.0
    model_name: str | None = None
    base_model: str | None = None
    entries: dict = field(default_factory=dict)

    def to_bytes(self):
        heap = bytearray(88)

        def put(data):
            at = len(heap)
            heap.extend(data.ljust(aligned(len(data), 8), b"\0"))
            return at

        text = lambda data: put(struct.pack("<I", len(data)) + data)
        names = [self.model_name, self.base_model]
        names = [0 if name is None else text(name.encode()) for name in names]
        table = b""
        for key, value in sorted(self.entries.items(), key=lambda e: e[0].encode()):
            key = text(key.encode())
            if isinstance(value, int):
                kind, at = 1, put(struct.pack("<I", value))
            elif isinstance(value, float):
                kind, at = 2, put(struct.pack("<f", value))
            else:
                kind, at = 3, text(value)
            table += struct.pack("<QIIQ", key, kind, 0, at)
        heap[:88] = struct.pack(
            "<2I10I2f2QIIQ", 1, 0, *self.numbers, self.rope_freq_base, self.rope_scale, *names,
            len(self.entries), 0, len(heap) if table else 0,
        )  # fmt: skip
        return bytes(heap) + table

    @staticmethod
    def parse(data):
        version, flags, *rest = struct.unpack_from("<2I10I2f2QIIQ", data)
        numbers, (base, scale, name, base_model, count, pad, table) = rest[:10], rest[10:]
        assert (version, flags, numbers[1], pad) == (1, 0, 0, 0)

        def text(at):
            assert at % 8 == 0 and at >= 88
            size = struct.unpack_from("<I", data, at)[0]
            assert at + 4 + size <= len(data)
            return data[at + 4 : at + 4 + size]

        info = ModelInfo(numbers, base, scale)
        info.model_name = text(name).decode() if name else None
        info.base_model = text(base_model).decode() if base_model else None
        for i in range(count):
            key, kind, pad, at = struct.unpack_from("<QIIQ", data, table + 24 * i)
            assert pad == 0 and at % 8 == 0
            unpack_at = lambda form: struct.unpack_from(form, data, at)[0]
            value = {1: lambda: unpack_at("<I"), 2: lambda: unpack_at("<f"), 3: lambda: text(at)}
            info.entries[text(key).decode()] = value[kind]()
        assert len(info.entries) == count
        return info
