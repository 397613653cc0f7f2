"""The native half of the package; everything here is wrapped by the modules beside it."""

from typing_extensions import Buffer as _Buffer
from collections.abc import Callable, Sequence
from typing import final

__all__ = [
    "Buffer",
    "Encoder",
    "File",
    "Index",
    "Words",
    "__version__",
    "build",
    "convert",
    "diff",
    "encode",
    "forked",
    "main",
    "open",
    "open_bytes",
    "quantize",
    "recall",
    "to_bytes",
    "verify",
    "write",
]

__version__: str

_Tell = Callable[[str, int, int | None], None]

@final
class Buffer(_Buffer):
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class File:
    @property
    def format(self) -> str: ...
    def names(self) -> list[str]: ...
    def has(self, name: str) -> bool: ...
    def describe(self, name: str) -> tuple[str, str, list[int], int | None, int | None]: ...
    def values(
        self, name: str, start: int | None = None, end: int | None = None
    ) -> tuple[str, list[int], Buffer]: ...
    def raw(self, name: str) -> Buffer | None: ...
    def summary(
        self,
        *,
        tensors: str | None = None,
        stats: bool = False,
        values: bool = False,
        vocabulary: bool = False,
        regions: bool = False,
    ) -> str: ...
    def metadata(self) -> str: ...
    def vocabulary(self) -> list[str] | None: ...
    def records(self) -> int | None: ...
    def record(self, row: int) -> str: ...

@final
class Encoder:
    def __new__(cls, model: str, compute: str, threads: int | None) -> Encoder: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def prompts(self) -> list[tuple[str, str]]: ...
    @property
    def default_prompt(self) -> str | None: ...
    def embed(
        self,
        texts: list[str],
        prompt: str | None = None,
        purpose: str | None = None,
        tell: _Tell | None = None,
    ) -> Buffer: ...
    def tokenize(self, texts: list[str], prompt: str | None = None) -> list[list[int]]: ...

@final
class Words:
    def __new__(cls, file: File) -> Words: ...
    def __len__(self) -> int: ...
    @property
    def dimensions(self) -> int: ...
    def find(self, word: str) -> int | None: ...
    def word(self, row: int) -> str: ...
    def words(self) -> list[str]: ...
    def lookup(self, word: str) -> tuple[bool, Buffer] | None: ...
    def nearest(
        self, vector: list[float], k: int, exclude: list[int], limit: int | None = None
    ) -> list[tuple[int, float]]: ...
    def evaluate(self, name: str, questions: bytes) -> str: ...

@final
class Index:
    def __new__(cls, file: File, tensor: str | None = None) -> Index: ...
    def __len__(self) -> int: ...
    @property
    def dimensions(self) -> int: ...
    def record(self, row: int) -> str | None: ...
    def word(self, row: int) -> str | None: ...
    def encoder(self, model: str | None = None) -> Encoder: ...
    def search(
        self, queries: bytes, k: int, name: str, filters: list[str], tell: _Tell | None = None
    ) -> tuple[Buffer, Buffer, int]: ...

def open(path: str, format: str | None = None) -> File: ...
def open_bytes(name: str, bytes: bytes, format: str | None = None) -> File: ...
def build(
    tensors: Sequence[tuple[str, str, list[int], _Buffer | None]],
    metadata: Sequence[tuple[str, str, list[int], bytes]],
    sizevars: Sequence[tuple[str, int]],
    words: list[str] | None,
    records: list[str] | None,
    copy: bool,
) -> File: ...
def write(
    file: File,
    path: str,
    format: str | None,
    options: list[tuple[str, str]],
    overwrite: bool,
    allow_loss: bool,
) -> str: ...
def to_bytes(file: File, name: str, format: str | None, allow_loss: bool) -> tuple[bytes, str]: ...
def encode(from_: str, to: str, count: int, bytes: bytes) -> bytes: ...
def verify(path: str, quick: bool) -> str: ...
def diff(first: str, second: str, tolerance: float, tensors_only: bool) -> str: ...
def convert(
    source: str,
    target: str,
    to: str | None,
    select: list[str],
    exclude: list[str],
    rename: list[tuple[str, str]],
    set: list[tuple[str, str]],
    dtype: str | None,
    options: list[tuple[str, str]],
    overwrite: bool,
    allow_loss: bool,
    dry_run: bool,
    tell: _Tell | None,
) -> str: ...
def quantize(
    source: str,
    target: str,
    method: str,
    select: list[str],
    exclude: list[str],
    calibrate: bool | None,
    texts: list[str] | None,
    overwrite: bool,
    allow_loss: bool,
    tell: _Tell | None,
) -> str: ...
def recall(
    first: str, second: str, k: int, name: str, sample: int, seed: int, tell: _Tell | None
) -> str: ...
def forked() -> None: ...
def main(arguments: list[str]) -> int: ...
