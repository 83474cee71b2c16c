"""Errors that a user can cause or meet. Each names the thing, the place and the remedy."""

import difflib
import shlex
from collections.abc import Iterable, Iterator


class MemoryDojoError(Exception):
    """Base of all errors that MemoryDojo raises on purpose."""


class UnknownNameError(MemoryDojoError, KeyError):
    """A name that nothing is registered under.

    Args:
        kind: What was looked up, for example ``"objective"``.
        name: The name that was not found.
        known: All names that would have been found.
        remedy: What else can be done.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], remedy: str = "") -> None:
        self.remedy = remedy
        self.kind = kind
        self.name = name
        self.known = sorted(known)
        super().__init__(self._message())

    def _message(self) -> str:
        near = difflib.get_close_matches(self.name, self.known, n=3, cutoff=0.5)
        text = f"unknown {self.kind} {self.name!r}"
        if near:
            return f"{text}; did you mean {' or '.join(repr(n) for n in near)}?{self.remedy}"
        shown = ", ".join(self.known[:12]) + (f" and {len(self.known) - 12} more" if len(self.known) > 12 else "")
        return f"{text}; known: {shown or 'none'}{self.remedy and '.'}{self.remedy}"

    def __str__(self) -> str:
        return self._message()

    def __reduce__(self) -> tuple[type["UnknownNameError"], tuple[str, str, list[str], str]]:
        return type(self), (self.kind, self.name, self.known, self.remedy)


class InvalidInputError(MemoryDojoError, ValueError):
    """A value that was given is out of range or contradicts another."""


def install_command(*extras: str, packages: Iterable[str] = (), command: str | None = None) -> str:
    """The one command that adds what is missing.

    Args:
        extras: The extras of ``memorydojo`` that bring it.
        packages: Distributions that no extra brings.
        command: What adds the rest of it.

    >>> install_command("mem0", "simulator")
    "pip install 'memorydojo[mem0,simulator]'"
    """
    wanted = [*packages, *([f"memorydojo[{','.join(extras)}]"] if extras else [])]
    return " && ".join([*([command] if command else []), *([f"pip install {shlex.join(wanted)}"] if wanted else [])])


class MissingPackageError(MemoryDojoError, ImportError):
    """An optional package is needed and not installed.

    Args:
        package: The distribution that is missing.
        needed_by: What needs it, as a user would name it.
        extra: The extra of ``memorydojo`` that brings it, or None if no extra does.
        command: The command that adds it, if another one is better than installing the extra.
    """

    def __init__(self, package: str, needed_by: str, extra: str | None, command: str | None = None) -> None:
        self.package, self.needed_by, self.extra, self.command = package, needed_by, extra, command
        how = command or (install_command(extra) if extra else install_command(packages=package.split()))
        super().__init__(f"{needed_by} needs the package {package!r}, which is not installed. Install it with: {how}")

    def __reduce__(self) -> tuple[type["MissingPackageError"], tuple[str, str, str | None, str | None]]:
        return type(self), (self.package, self.needed_by, self.extra, self.command)


class EndpointDownError(MemoryDojoError):
    """A model endpoint or its key is dead, or answers cannot be recorded; it stays so until somebody mends it."""


class ModelError(MemoryDojoError):
    """A language or embedding model could not be called, or gave an answer that cannot be used.

    Args:
        message: What happened.
        code: What kind of error, for programs, if the gateway says so: ``"refused"``, ``"timeout"``, ...
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class UnusableAnswerError(ModelError):
    """A model answered, but not in the form that was asked for, however often it was asked."""


class MemorySystemError(MemoryDojoError):
    """A memory system failed while it wrote, retrieved or was read.

    Args:
        system: The memory system's name.
        call: What it was doing, for example ``"write"``.
        problem: What went wrong.
        remedy: What a user can do about it.
    """

    def __init__(self, system: str, call: str, problem: str, remedy: str) -> None:
        self.system, self.call, self.problem, self.remedy = system, call, problem, remedy
        super().__init__(f"memory system {system!r} failed in {call}: {problem}. {remedy}")

    def __reduce__(self) -> tuple[type["MemorySystemError"], tuple[str, str, str, str]]:
        return type(self), (self.system, self.call, self.problem, self.remedy)


class SavedRunError(MemoryDojoError):
    """A saved run or a directory of runs cannot be read or written."""


class RunInUseError(SavedRunError):
    """Another process is writing the run."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it comes from, nearest first and each once.

    An error that was raised out of the handling of another one that it had caused comes from itself.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
