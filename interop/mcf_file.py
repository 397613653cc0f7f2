"""Whole MCF files: the reader, which demands a good file, and the writer, which makes any."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

from mcf_peer import (
    MODEL_INFO,
    PLAIN,
    QUANT_INFO,
    TENSOR_DATA,
    TENSOR_INDEX,
    ModelInfo,
    Tensor,
    aligned,
    block_sizes,
)


class McfFile:
    """A file as it is read: `sections` by type (version, offset, bytes), `tensors` by name."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        head = struct.unpack_from("<4sHHIIQQQ", data)
        magic, major, self.minor, size, count, directory, file_size, self.flags = head
        assert (magic, major, file_size) == (b"MCF\0", 1, len(data)) and size >= 40 and count >= 1
        assert directory + 24 * count <= len(data)
        spans = [(0, size), (directory, directory + 24 * count)]
        self.directory_offset, self.sections = directory, {}
        for i in range(count):
            kind, version, start, length = struct.unpack_from("<IIQQ", data, directory + 24 * i)
            assert kind not in self.sections and start % 8 == 0
            assert start + length <= len(data)
            spans.append((start, start + length))
            self.sections[kind] = (version, start, data[start : start + length])
        spans.sort()
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), "sections overlap"
        covered = bytearray(data)
        for start, end in spans:
            covered[start:end] = bytes(end - start)
        assert not any(covered), "something stands between the sections"
        self.tensors, self.sorted, self.index_flags = {}, True, 0
        if TENSOR_INDEX in self.sections:
            self._read_index(data)
        self.info = None
        if MODEL_INFO in self.sections:
            self.info = ModelInfo.parse(self.bytes_of(MODEL_INFO))

    def bytes_of(self, kind):
        return self.sections[kind][2]

    def order(self):
        """The types of the sections, as they stand in the file."""
        return sorted(self.sections, key=lambda kind: self.sections[kind][1])

    def _read_index(self, data):
        section = self.bytes_of(TENSOR_INDEX)
        head = struct.unpack_from("<4I4Q", section)
        version, self.index_flags, count, dims_count, entries, dims, strings, strings_size = head
        assert version == 1 and count >= 1 and entries >= 48
        assert max(entries + 40 * count, dims + 8 * dims_count) <= len(section)
        assert strings + strings_size <= len(section)
        _, start, payloads = self.sections[TENSOR_DATA]
        records = self._read_records(count)
        names = []
        for i in range(count):
            entry = struct.unpack_from("<6I2Q", section, entries + 40 * i)
            name_off, name_len, kind, rank, dim_off, zero, offset, size = entry
            assert zero == 0 and name_len > 0 and name_off + name_len <= strings_size
            assert dim_off + rank <= dims_count
            name = section[strings + name_off : strings + name_off + name_len].decode()
            shape = struct.unpack_from(f"<{rank}Q", section, dims + 8 * dim_off)
            assert start <= offset and offset + size <= start + len(payloads)
            record = records.pop(i, None)
            assert (record is None) == (kind in PLAIN), "a record for each quantized tensor"
            domain, clips = 0, None
            if record is not None:
                method, domain, block, group, *clips = record
                assert (method, (block, group)) == (kind, block_sizes(kind))
            payload = data[offset : offset + size]
            self.tensors[name] = Tensor(name, kind, shape, payload, domain, clips, offset)
            names.append(name)
        assert not records and len(self.tensors) == count
        self.sorted = names == sorted(names, key=str.encode)
        self._check_payloads(start, payloads)

    def _check_payloads(self, start, payloads):
        """They overlap only where they are the same, and nothing stands between them."""
        spans = sorted({(t.offset, t.offset + len(t.payload)) for t in self.tensors.values()})
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), "payloads overlap"
        rest = bytearray(payloads)
        for first, end in spans:
            rest[first - start : end - start] = bytes(end - first)
        assert not any(rest), "something stands between the payloads"

    def _read_records(self, count):
        if QUANT_INFO not in self.sections:
            return {}
        section = self.bytes_of(QUANT_INFO)
        version, n = struct.unpack_from("<2I", section)
        assert version == 1 and len(section) == 8 + 24 * n
        records = {}
        for i in range(n):
            tensor, *record = struct.unpack_from("<IBBHH6s2f", section, 8 + 24 * i)
            assert tensor < count and tensor not in records
            assert record.pop(4) == bytes(6)
            records[tensor] = record
        return records


@dataclass
class Layout:
    """How a file is laid out; without more said, as the reference quantizer does it."""

    # The sections in the order of the file, and versions that are not 1.
    order: list | None = None
    versions: dict = field(default_factory=dict)
    minor: int = 1
    flags: int = 1
    index_flags: int = 3
    directory_first: bool = False
    # The directory by type, or in the order of the file.
    sort_directory: bool = True
    # Tensors of the index and of the data by name, or as they are given.
    sort_index: bool = True
    sort_data: bool = True
    alignment: int = 64
    # Zeros between payloads that nothing needs.
    gap: int = 0


def write(path, tensors, info=ModelInfo(), files=None, layout=None):
    """A file with these tensors; `files` are the bytes of all other sections by type. `info` may be
    bytes, and None for no such section."""
    layout = layout or Layout()
    sections = dict(files or {})
    if info is not None:
        sections[MODEL_INFO] = info if isinstance(info, bytes) else info.to_bytes()
    by_name = lambda list_: sorted(list_, key=lambda t: t.name.encode())
    index = by_name(tensors) if layout.sort_index else list(tensors)
    records = _records(index)
    order = layout.order
    if order is None:
        order = [*sorted(sections), *([TENSOR_DATA, TENSOR_INDEX] if index else [])]
        order += [QUANT_INFO] if records else []
    table = 24 * len(order)
    at = aligned(40 + (table if layout.directory_first else 0), 8)
    body, places = bytearray(at), {}
    for kind in order:
        body.extend(bytes(aligned(len(body), 8) - len(body)))
        start = len(body)
        if kind == TENSOR_DATA:
            _place(by_name(tensors) if layout.sort_data else tensors, start, layout)
            body.extend(_data(tensors, start))
        elif kind == TENSOR_INDEX:
            assert TENSOR_DATA in places, "the index is made behind the data"
            body.extend(_index(index, layout.index_flags))
        else:
            body.extend(records if kind == QUANT_INFO else sections[kind])
        places[kind] = (start, len(body) - start)
    directory = b"".join(
        struct.pack("<IIQQ", kind, layout.versions.get(kind, 1), *places[kind])
        for kind in (sorted(places) if layout.sort_directory else places)
    )
    start = 40
    if layout.directory_first:
        body[40 : 40 + table] = directory
    else:
        start = aligned(len(body), 8)
        body.extend(bytes(start - len(body)) + directory)
    head = (b"MCF\0", 1, layout.minor, 40, len(places), start, len(body), layout.flags)
    body[:40] = struct.pack("<4sHHIIQQQ", *head)
    Path(path).write_bytes(body)
    return path


def write_sections(path, sections, layout):
    """A file of sections alone, whatever they are."""
    table = 24 * len(sections)
    body = bytearray(40 + (table if layout.directory_first else 0))
    places = {}
    for kind in layout.order:
        body.extend(bytes(aligned(len(body), 8) - len(body)))
        places[kind] = (len(body), len(sections[kind]))
        body.extend(sections[kind])
    directory = b"".join(struct.pack("<IIQQ", kind, 1, *places[kind]) for kind in sorted(places))
    start = 40 if layout.directory_first else aligned(len(body), 8)
    if layout.directory_first:
        body[40 : 40 + table] = directory
    else:
        body.extend(bytes(start - len(body)) + directory)
    body[:40] = struct.pack("<4sHHIIQQQ", b"MCF\0", 1, 1, 40, len(places), start, len(body), 1)
    Path(path).write_bytes(body)
    return path


def _place(tensors, at, layout):
    """Gives every payload its place; one that is the same as another's has the place of that."""
    first = {}
    for t in tensors:
        place = first.get(t.same_as or t.name)
        if place is None:
            place = aligned(at, layout.alignment)
            first[t.same_as or t.name] = place
            at = place + len(t.payload) + layout.gap
        t.offset = place


def _data(tensors, start):
    out = bytearray()
    for t in tensors:
        at = t.offset - start
        out.extend(bytes(max(0, at + len(t.payload) - len(out))))
        out[at : at + len(t.payload)] = t.payload
    return out


def _index(tensors, flags):
    entries, dims, strings = b"", b"", b""
    for t in tensors:
        name = t.name.encode()
        entries += struct.pack(
            "<6I2Q", len(strings), len(name), t.kind, len(t.shape), len(dims) // 8, 0,
            t.offset, len(t.payload),
        )  # fmt: skip
        dims += struct.pack(f"<{len(t.shape)}Q", *t.shape)
        strings += name
    at = 48 + len(entries)
    head = (1, flags, len(tensors), len(dims) // 8, 48, at, at + len(dims), len(strings))
    return struct.pack("<4I4Q", *head) + entries + dims + strings


def _records(tensors):
    """The QuantInfo section, or nothing."""
    out, count = b"", 0
    for i, t in enumerate(tensors):
        if t.kind not in PLAIN and t.clips is not None:
            sizes = block_sizes(t.kind)
            out += struct.pack("<IBBHH6x2f", i, t.kind, t.domain, *sizes, *t.clips)
            count += 1
    return struct.pack("<2I", 1, count) + out if count else b""
