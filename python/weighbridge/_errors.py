"""The exceptions of the package: one class a kind of error."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """What everything that the package itself raises is.

    Attributes:
        kind: the kind of error, as docs/json.md lists them
        file: the file that it is about, or None
        start, end: the bytes that it is about, or None
        field: the field, tensor, option or name that it is about, or None
        rule, expected, found: of a broken rule of a format, else None
        hint: what would help, or None
    """

    kind: str = "error"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.kind = facts.get("kind", self.kind)
        self.file: str | None = facts.get("file")
        self.start: int | None = facts.get("start")
        self.end: int | None = facts.get("end")
        self.field: str | None = facts.get("field")
        self.rule: str | None = facts.get("rule")
        self.expected: str | None = facts.get("expected")
        self.found: str | None = facts.get("found")
        self.hint: str | None = facts.get("hint")

    def __str__(self) -> str:
        place = f"{self.file}, byte {self.start}: " if self.file and self.start is not None else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.message}{hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), self.message, self.facts()))

    def facts(self) -> dict[str, Any]:
        """What it says beside its message."""
        return {name: value for name, value in vars(self).items() if name != "message"}


def _again(made: type[Error], message: str, facts: dict[str, Any]) -> Error:
    return made(message, **facts)


class FormatError(Error):
    """A file is not what it should be, or can't be used here."""


class MalformedError(FormatError):
    """A file breaks a rule of its format."""

    kind = "malformed"


class UnrecognisedError(FormatError):
    """A file is of no known format."""

    kind = "unrecognised"


class UnsupportedError(FormatError):
    """It is known what this is, but it can't be used here."""

    kind = "unsupported"


class NotFound(Error, FileNotFoundError):
    """There is no such file or model."""

    kind = "not-found"

    def __init__(self, message: str, **facts: Any) -> None:
        Error.__init__(self, message, **facts)
        self.filename = self.file
        self.strerror = message


FileNotFound = NotFound


class RefusedError(Error, ValueError):
    """The request can't be carried out as it was made."""

    kind = "refused"


class LossError(Error):
    """Something would be lost; ``losses`` says what. ``allow_loss=True`` goes on without it."""

    kind = "loss"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.losses: list[dict[str, Any]] = facts.get("losses", [])


class LimitError(Error):
    """A limit was reached that protects memory and time."""

    kind = "limit"


class Cancelled(Error):
    """The work was stopped."""

    kind = "cancelled"


class ChangedError(Error, OSError):
    """A file was cut or rewritten while it was read."""

    kind = "changed"


class IoError(Error, OSError):
    """Reading or writing failed."""

    kind = "io"


class TokenizerError(FormatError):
    """The tokenizer of a model can't be used."""


class InferenceError(Error):
    """A model failed to give a vector."""


_KINDS: dict[str, type[Error]] = {
    made.kind: made
    for made in (
        MalformedError,
        UnrecognisedError,
        UnsupportedError,
        NotFound,
        RefusedError,
        LossError,
        LimitError,
        Cancelled,
        ChangedError,
        IoError,
    )
}


def made_of(report: str) -> Error:
    """The exception of an error's JSON."""
    import json

    facts: dict[str, Any] = json.loads(report)
    message = facts.pop("message")
    return _KINDS.get(facts.pop("kind"), Error)(message, **facts)


def as_argument(error: RefusedError) -> RefusedError:
    """The library speaks of options; what is meant are arguments of `save`."""
    if error.field == "to":
        error.field = "format"
        error.hint = (error.hint or "").replace("the option to ", "format= ")
    elif error.field == "select":
        error.field, error.hint = "tensors", "save one at a time, or choose another format"
    elif error.field in ("words", "overwrite"):
        error.hint = (error.hint or "").replace(f"the option {error.field} ", f"{error.field}= ")
    return error
