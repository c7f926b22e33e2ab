"""A trace as windows with findings: the Python face of the native trace reader.

The tracer writes one record per window into a pipe; the native module reads, analyses and names it. Windows of a
campaign show the same findings again and again, so the native side numbers the distinct ones, and a `Finding` is built
once per number. The format of the trace is described in docs/reference/trace-format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from commutant import _native
from commutant.mtrace.course import ObjectCourse, WindowCourse
from commutant.mtrace.finding import NOTHING_IGNORED, Access, ByteRange, Finding, LineField, Sharing, Touched
from commutant.mtrace.picture import Picture, PictureLine
from commutant.support import RunError

_READ, _PREFETCH_FOR_WRITE = 0, 2
"""Kinds of access, as docs/reference/trace-format.md numbers them."""


@dataclass(frozen=True, slots=True)
class TracedWindow:
    """What the tracer saw in one window.

    `sequence` counts windows from 0 since the tracer was attached. With each finding stands in `pictures` the object
    that shows it; a finding that several objects show comes several times. `ignored` holds, per rule that removed any,
    the number of conflicting lines that it removed. `course` says in which order the lines of the pictures were
    touched; None without findings. `counted_accesses` is the number of recorded accesses per core that no rule ignores;
    a core beyond its end recorded nothing.
    """

    sequence: int
    findings: tuple[Finding, ...]
    ignored: Mapping[str, int]
    counted_accesses: tuple[int, ...]
    pictures: tuple[Picture, ...] = ()
    course: WindowCourse | None = None


def kernel_layout(kallsyms: bytes, btf: bytes, modules: Sequence[bytes] = ()) -> str:
    """The text of the tracer's layout file for a kernel.

    `kallsyms` is the kernel's `/proc/kallsyms`, read as root; `btf` its `/sys/kernel/btf/vmlinux`, or a `vmlinux` that
    holds it, or empty if it has none; `modules` the `/sys/kernel/btf/<module>` of modules that it has loaded. Raises
    RunError if one of them is not what it should be.
    """
    try:
        return _native.kernel_layout(kallsyms, btf, modules)
    except ValueError as error:
        raise RunError(f"this kernel cannot be traced: {error}") from None


def kernel_names(kallsyms: bytes, btf: bytes, modules: Sequence[bytes] = ()) -> _native.KernelNames:
    """A kernel's symbols and types for any number of readers; arguments and errors as in `kernel_layout`."""
    try:
        return _native.KernelNames(kallsyms, btf, modules)
    except ValueError as error:
        raise RunError(f"this kernel's objects cannot be named: {error}") from None


class TraceReader:
    """Reads one trace from a file or a pipe, batch by batch. Not for several threads at once."""

    def __init__(
        self,
        fd: int,
        names: _native.KernelNames | _native.ProgramNames | _native.LoadedNames,
        expanded: Callable[[Finding], Finding] | None = None,
    ) -> None:
        """`fd` stays the caller's. Nothing is read before the first `read_batch`, so the tracer may start later.

        `expanded` adds to each distinct finding what else is known of it, such as inlined functions and lines.
        """
        self._reader = _native.TraceReader(fd, names)
        self._expanded = expanded
        self._findings: dict[int, Finding] = {}
        self._pictures: dict[int, Picture] = {}
        self._fields: dict[int, tuple[LineField, ...]] = {}

    def read_batch(self) -> list[TracedWindow] | None:
        """The windows up to the end of the next batch, or None past the end of the trace.

        Blocks until the tracer has written them; other threads go on running. Raises RunError if the trace is damaged
        or ends too early (the emulator died), or if the tracer had no room for all accesses of a window.
        """
        try:
            windows = self._reader.read_batch()
        except _native.TraceError as error:
            raise RunError(str(error)) from None
        return None if windows is None else [self._window(*window) for window in windows]

    def _window(
        self,
        sequence: int,
        findings: list[tuple[int, int]],
        ignored: list[int],
        counted: list[int],
        lost: int,
        course: tuple[list[int], list[tuple[int, list[bytes]]]],
    ) -> TracedWindow:
        if lost:
            raise RunError(
                f"window {sequence}: the tracer's buffers were too small for {lost} accesses; "
                "expected calls that touch less memory (reduce the size of their buffers)"
            )
        return TracedWindow(
            sequence=sequence,
            findings=tuple([self._finding(number) for number, _ in findings]),
            pictures=tuple([self._picture(number) for _, number in findings]),
            ignored=_counts(ignored) if any(ignored) else NOTHING_IGNORED,
            counted_accesses=tuple(counted),
            course=self._course(*course) if findings else None,
        )

    def _course(self, logged: list[int], objects: list[tuple[int, list[bytes]]]) -> WindowCourse:
        drawn = (ObjectCourse(self._picture(number), tuple(lines)) for number, lines in objects)
        return WindowCourse(tuple(logged), tuple(drawn))

    def _finding(self, number: int) -> Finding:
        finding = self._findings.get(number)
        if finding is None:
            object_name, field, sharing, locks, first, second, line = self._reader.finding(number)
            address, fields, touched = line
            under, under_owner, owner, lock_number = locks
            finding = Finding(
                line_address=address,
                object=object_name,
                field=field,
                sharing=cast(Sharing, sharing),
                first=_access(*first),
                second=_access(*second),
                fields=tuple(LineField(*one) for one in fields),
                touched=_touched(touched),
                under=under,
                under_owner=under_owner,
                lock_number=lock_number,
                owner=owner,
            )
            if self._expanded is not None:
                finding = self._expanded(finding)
            self._findings[number] = finding
        return finding

    def _picture(self, number: int) -> Picture:
        picture = self._pictures.get(number)
        if picture is None:
            holder, lines = self._reader.picture(number)
            drawn = (PictureLine(offset, self._named(fields), _touched(touched)) for offset, fields, touched in lines)
            picture = self._pictures[number] = Picture(holder, tuple(drawn))
        return picture

    def _named(self, number: int) -> tuple[LineField, ...]:
        fields = self._fields.get(number)
        if fields is None:
            fields = self._fields[number] = tuple(LineField(*one) for one in self._reader.fields(number))
        return fields


def _touched(parts: Iterable[tuple[int, list[ByteRange], list[ByteRange]]]) -> tuple[Touched, ...]:
    return tuple(Touched(core, tuple(read), tuple(written)) for core, read, written in parts)


def _counts(ignored: list[int]) -> Mapping[str, int]:
    return {rule: count for rule, count in zip(_native.RULES, ignored, strict=True) if count}


def _access(core: int, kind: int, offset: int, size_bytes: int, function: str, stack: list[str]) -> Access:
    return Access(core, kind != _READ, offset, size_bytes, function, tuple(stack), kind == _PREFETCH_FOR_WRITE)
