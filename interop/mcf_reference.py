"""What the reference quantizer of MCF does, in numpy: every step in f32, files byte for byte."""

import numpy as np

from common import bf16_to_f32
from mcf_file import Layout, write
from mcf_peer import (
    METHODS,
    MODEL_INFO,
    QUANT_INFO,
    TENSOR_DATA,
    TENSOR_INDEX,
    Blocks,
    Tensor,
    largest_code,
)


def _round(x):
    """Half away from zero; in f64, where adding a half to an f32 is exact."""
    x = x.astype("f8")
    return np.trunc(x + np.copysign(0.5, x))


def cut_to_f16(x):
    """The upper bits of an f32: what does not fit is cut off, not rounded. Below the smallest
    normal number comes zero, above the largest infinity."""
    bits = np.asarray(x, "<f4").view("<u4").astype(int)
    exponent = (bits >> 23 & 255) - 127
    half = bits >> 16 & 0x8000 | exponent + 15 << 10 | bits >> 13 & 0x3FF
    half = np.where(exponent > 15, bits >> 16 & 0x8000 | 0x7C00, half)
    return np.where(exponent < -14, 0, half).astype("<u2").view("<f2")


def _codes(blocks, scales, most):
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inverse = np.where(scales > 0, np.float32(1) / scales, np.float32(0)).astype("f4")
        return np.clip(_round(blocks * inverse[..., None]), -most, most).astype(int)


def encode(method, values, clips=None):
    """A matrix of f32 as blocks, and the bounds that are recorded."""
    kind = METHODS[method]
    most = largest_code(kind)
    values = values.astype("f4")
    if clips is None:
        largest = np.abs(values).max()
        clips = (-largest, largest)
    rows, cols = values.shape
    count = -(-cols // 32)
    padded = np.zeros((rows, count * 32), "f4")
    padded[:, :cols] = np.clip(values, np.float32(clips[0]), np.float32(clips[1]))
    blocks = padded.reshape(rows, count, 32)
    scales = np.abs(blocks).max(axis=2) / np.float32(most)
    if kind < 0x30:
        codes = _codes(blocks, scales, most)
        return Blocks(cols, codes.reshape(rows, -1), cut_to_f16(scales)), clips
    groups = -(-count // 8)
    grouped = np.zeros((rows, groups * 8), "f4")
    grouped[:, :count] = scales
    supers = grouped.reshape(rows, groups, 8).max(axis=2)
    each = np.repeat(supers, 8, axis=1)[:, :count]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.clip(_round((scales / each) * np.float32(32)), 1, 63)
    shares = np.where(scales > 0, shares, 0).astype("u1")
    codes = _codes(blocks, each * (shares.astype("f4") / np.float32(32)), most)
    return Blocks(cols, codes.reshape(rows, -1), cut_to_f16(supers), shares), clips


def quantize_file(source, path, method, clips=None):
    """Every matrix of real numbers of a file, quantized: the whole output file."""
    tensors = []
    for t in source.tensors.values():
        if t.kind in (1, 2, 3) and len(t.shape) == 2:
            values = bf16_to_f32(t.raw()) if t.kind == 3 else t.raw()
            content, used = encode(method, values, clips)
            kind = METHODS[method]
            tensors.append(Tensor(t.name, kind, t.shape, content.payload(kind), 0, used))
        else:
            tensors.append(Tensor(t.name, t.kind, t.shape, t.payload))
    own = (MODEL_INFO, QUANT_INFO, TENSOR_INDEX, TENSOR_DATA)
    files = {kind: s[2] for kind, s in source.sections.items() if kind not in own}
    info = source.bytes_of(MODEL_INFO) if MODEL_INFO in source.sections else None
    versions = {kind: s[0] for kind, s in source.sections.items() if kind not in own[1:]}
    return write(path, tensors, info, files, Layout(versions=versions))
