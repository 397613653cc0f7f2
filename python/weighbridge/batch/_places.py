"""Files and folders by path or by an address such as s3://bucket/folder."""

from __future__ import annotations

import fnmatch
import glob
import json
import os
from typing import Any

from .._errors import IoError, MalformedError, NotFound, RefusedError

# Readers of Parquet leave out names that begin so.
PLAN, DONE = "_plan.json", "_done.json"


def files_of(pattern: str) -> list[str]:
    """The files that a path with wildcards names, in the order of their names; those of a folder end in .parquet."""
    if "://" not in pattern:
        if os.path.isdir(pattern):
            pattern = os.path.join(pattern, "**", "*.parquet")
        found = sorted(os.path.abspath(path) for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    else:
        import pyarrow.fs

        wild = next((at for at, letter in enumerate(pattern) if letter in "*?["), len(pattern))
        start = pattern[:wild].rpartition("/")[0] if wild < len(pattern) else pattern
        files, folder = pyarrow.fs.FileSystem.from_uri(start)
        scheme = pattern.partition("://")[0]
        infos = files.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True, recursive=True))
        wanted = folder + pattern[len(start) :] if wild < len(pattern) else folder + "/*.parquet"
        paths = sorted(info.path for info in infos if info.is_file and fnmatch.fnmatch(info.path, wanted))
        found = [f"{scheme}://{path}" for path in paths]
    if not found:
        raise NotFound(f"no file is named {pattern}", file=pattern)
    return found


def rows_of(file: str, column: str, added: str) -> int:
    """How many rows a Parquet file has, after a look at whether it has texts and a place for vectors."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files, path = _at(file)
    try:
        with files.open_input_file(path) as opened, pq.ParquetFile(opened) as parquet:
            schema, rows = parquet.schema_arrow, parquet.metadata.num_rows
    except pa.ArrowInvalid as error:
        raise MalformedError(f"{file} can't be read as Parquet: {error}", file=file) from error
    except OSError as error:
        raise IoError(f"{file} can't be read: {error}", file=file) from error
    if column not in schema.names:
        message = f"{file} has no column {column!r}: {', '.join(schema.names)}"
        raise RefusedError(message, file=file, field=column)
    kind = schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise RefusedError(f"the column {column!r} of {file} holds {kind}, not texts", file=file, field=column)
    if added in schema.names:
        raise RefusedError(f"{file} has a column {added!r} already", file=file, field=added, hint="--vector names another")
    return int(rows)


class Folder:
    """A folder for output. Its files count when the one that says so is there, which is written last: places without
    renaming have that, too."""

    def __init__(self, path: str) -> None:
        self.name = path if "://" in path else os.path.abspath(path)
        self._files, self._path = _at(self.name)

    def folder(self, name: str) -> Folder:
        """A folder in it."""
        return Folder(f"{self.name.rstrip('/')}/{name}")

    def said(self, name: str) -> dict[str, Any] | None:
        """What a file of JSON says, if it is there."""
        try:
            with self._files.open_input_file(f"{self._path}/{name}") as file:
                said: dict[str, Any] = json.loads(file.read())
                return said
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise MalformedError(f"{self.name}/{name} is not JSON: {error}", file=f"{self.name}/{name}") from error

    def say(self, name: str, what: dict[str, Any]) -> None:
        """Writes a file of JSON."""
        with self._files.open_output_stream(f"{self._path}/{name}") as file:
            file.write(json.dumps(what, indent=1).encode())

    def is_empty(self) -> bool:
        """Whether nothing is in it, or it isn't there."""
        import pyarrow.fs

        return not self._files.get_file_info(pyarrow.fs.FileSelector(self._path, allow_not_found=True))

    def clear(self) -> None:
        """Makes it an empty folder."""
        self._files.create_dir(self._path, recursive=True)
        self._files.delete_dir_contents(self._path, missing_dir_ok=True)

    def count(self, only: list[str] | None) -> int:
        """The rows of its Parquet files; where some are named, others are left over from attempts and removed."""
        import pyarrow.fs
        import pyarrow.parquet as pq

        kept = None if only is None else {os.path.basename(path) for path in only}
        rows = 0
        for info in self._files.get_file_info(pyarrow.fs.FileSelector(self._path, recursive=True)):
            name = os.path.basename(info.path)
            if not info.is_file or not name.endswith(".parquet"):
                continue
            if kept is not None and name not in kept:
                self._files.delete_file(info.path)
                continue
            with self._files.open_input_file(info.path) as file:
                rows += pq.read_metadata(file).num_rows
        return rows


def _at(path: str) -> tuple[Any, str]:
    import pyarrow.fs

    found: tuple[Any, str] = pyarrow.fs.FileSystem.from_uri(path if "://" in path else os.path.abspath(path))
    return found
