"""Files as safetensors' ``safe_open`` gives them."""

from __future__ import annotations

from typing import Any, Literal

from ._files import Closing, Container, Path, Slice, opened

_TORCH = ("pt", "torch", "pytorch")
_NUMPY = ("np", "numpy")


class safe_open(Closing):
    """A file as safetensors' ``safe_open`` gives it, of any format.

    Args:
        filename: the file
        framework: ``np`` for arrays of numpy, ``pt`` for tensors of torch over the file's memory
        device: where tensors of torch shall be
        backend: ``pread`` gives tensors memory of their own; with ``mmap`` they look at the file

    >>> import tempfile, os, numpy as np, weighbridge
    >>> path = os.path.join(tempfile.mkdtemp(), "some.safetensors")
    >>> report = weighbridge.save(path, {"w": np.arange(6, dtype=np.int32).reshape(2, 3)})
    >>> with weighbridge.safe_open(path, framework="np") as file:
    ...     list(file.keys()), file.get_slice("w")[:, :2].tolist()
    (['w'], [[0, 1], [3, 4]])
    """

    def __init__(
        self,
        filename: Path,
        framework: Literal["np", "numpy", "pt", "torch", "pytorch"] = "np",
        device: Any = "cpu",
        backend: Literal["mmap", "pread"] = "mmap",
    ) -> None:
        if framework not in _NUMPY + _TORCH:
            raise ValueError(f"framework {framework!r} is not known: np or pt")
        if backend not in ("mmap", "pread"):
            raise ValueError(f"backend {backend!r} is not known: mmap or pread")
        super().__init__(opened(filename, None))
        self._copies = backend == "pread"
        self._tensors: Any = None
        if framework in _TORCH:
            from ._torch import Tensors

            self._tensors = Tensors(self._file, None if self._copies else filename, device)

    def close(self) -> None:
        """Gives the file back, as soon as no tensor looks at it. Nothing can be asked of it then."""
        super().close()
        self._tensors = None

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._file.names())

    def offset_keys(self) -> list[str]:
        """The names of all tensors, in the order of the file."""
        return self._file.names()

    def metadata(self) -> dict[str, str] | None:
        """The texts of the file."""
        values = Container(self._file).metadata.items()
        return {key: value for key, value in values if isinstance(value, str)} or None

    def get_tensor(self, name: str) -> Any:
        """A tensor, whole."""
        file = self._file
        if self._tensors is not None:
            return self._tensors.whole(name)
        array = Container(file)[name]
        return array.copy() if self._copies else array

    def get_tensors(self) -> dict[str, Any]:
        """All tensors by name."""
        return {name: self.get_tensor(name) for name in self.keys()}

    def get_slice(self, name: str) -> Any:
        """A tensor of which only what is asked for is read."""
        found = Slice(self._file, name)
        if self._tensors is None:
            return found
        from ._torch import TorchSlice

        return TorchSlice(found, self._tensors, name)
