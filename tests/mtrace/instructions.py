"""Instructions that access memory, and what the tracer sees of each (docs/reference/trace-format.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from commutant.mtrace.finding import Finding, Touched

Bytes = tuple[tuple[int, int], ...]


class Seen(NamedTuple):
    """What the tracer sees of an instruction: the bytes that it reads and writes of the line."""

    instruction: str
    read: Bytes
    written: Bytes
    is_atomic: bool = False
    """In a machine it reads what it writes, too."""
    is_prefetch: bool = False
    """What is written is only prefetched for writing."""

    def in_a_machine(self) -> Seen:
        """The same in a machine."""
        return self._replace(read=self.written) if self.is_atomic else self


_SIZES = (("b", "al", 1), ("w", "ax", 2), ("l", "eax", 4), ("q", "rax", 8))


def at(size_bytes: int, offset: int = 16) -> Bytes:
    return ((offset, size_bytes),) if size_bytes else ()


def _read(instruction: str, size_bytes: int) -> Seen:
    return Seen(instruction, at(size_bytes), ())


def _written(instruction: str, size_bytes: int) -> Seen:
    return Seen(instruction, (), at(size_bytes))


def _changed(instruction: str, size_bytes: int) -> Seen:
    return Seen(instruction, at(size_bytes), at(size_bytes))


def _atomic(instruction: str, size_bytes: int) -> Seen:
    return Seen(instruction, (), at(size_bytes), is_atomic=True)


def _prefetched(instruction: str) -> Seen:
    return Seen(instruction, (), at(1), is_prefetch=True)


TABLE: tuple[Seen, ...] = (
    *(_written(f"mov{letter} %{register}, M", size) for letter, register, size in _SIZES),
    *(_read(f"mov{letter} M, %{register}", size) for letter, register, size in _SIZES),
    *(_changed(f"add{letter} %{register}, M", size) for letter, register, size in _SIZES),
    *(_atomic(f"lock add{letter} %{register}, M", size) for letter, register, size in _SIZES),
    *(_atomic(f"xchg{letter} %{register}, M", size) for letter, register, size in _SIZES),
    *(_atomic(f"lock cmpxchg{letter} %{register}, M", size) for letter, register, size in _SIZES),
    *(_read(f"cmp{letter} %{register}, M", size) for letter, register, size in _SIZES),
    _written("movl $1, M", 4),
    _written("movnti %rax, M", 8),
    _read("movzbl M, %eax", 1),
    _read("movslq M, %rax", 4),
    _read("addq M, %rax", 8),
    _read("imulq M, %rax", 8),
    _read("testb $1, M", 1),
    _read("btq $3, M", 8),
    _read("popcntq M, %rax", 8),
    _read("movbeq M, %rax", 8),
    _written("movbeq %rax, M", 8),
    _written("sete M", 1),
    _changed("incl M", 4),
    _changed("negq M", 8),
    _changed("shlq $1, M", 8),
    _changed("btsq $3, M", 8),
    _changed("orb $1, M", 1),
    _atomic("lock incq M", 8),
    _atomic("lock notl M", 4),
    _atomic("lock xaddq %rax, M", 8),
    _atomic("lock btsq $3, M", 8),
    _atomic("lock btrq $3, M", 8),
    _atomic("lock cmpxchg8b M", 8),
    _atomic("lock cmpxchg16b M", 16),
    _read("pushq M; popq %rax", 8),
    _written("pushq $0; popq M", 8),
    _read("movd M, %xmm0", 4),
    _read("movq M, %xmm0", 8),
    _read("movups M, %xmm0", 16),
    _read("movdqa M, %xmm0", 16),
    _read("paddq M, %xmm0", 16),
    _written("movd %xmm0, M", 4),
    _written("movhps %xmm0, M", 8),
    _written("movups %xmm0, M", 16),
    _written("movntdq %xmm0, M", 16),
    _written("pextrq $1, %xmm0, M", 8),
    _read("vmovups M, %ymm0", 32),
    _read("vpbroadcastd M, %ymm0", 4),
    _written("vmovups %ymm0, M", 32),
    _read("flds M; fstp %st(0)", 4),
    _read("fldl M; fstp %st(0)", 8),
    _read("fildq M; fstp %st(0)", 8),
    _written("fldz; fstpl M", 8),
    _written("fldz; fstpt M", 10),
    Seen("S cld; rep stosb", (), at(8)),
    Seen("S cld; rep movsb", at(8, 32), at(8)),
    Seen("S cld; rep stosq", (), at(24)),
    Seen("S cld; movsl", at(4, 32), at(4)),
    Seen("S cld; lodsb", at(1, 32), ()),
    Seen("S cld; scasb", at(1), ()),
    Seen("leaq M, %rax", (), ()),
    Seen("nopl M", (), ()),
    _prefetched("prefetchw M"),
    _prefetched("lea M, %rdi; prefetchw (%rdi)"),
    _prefetched("mov %0, %rdx; mov $2, %ecx; prefetchw (%rdx, %rcx, 8)"),
    # Invisible: QEMU makes nothing of them, and no other core loses the line by them.
    Seen("prefetcht0 M", (), ()),
    Seen("prefetch M", (), ()),
    Seen("clflush M", (), ()),
)
"""Instructions, with `M` for 16 bytes after the line's start, and what they read and write of the line. `S` stands for
its address in RDI, that of its second half in RSI, and a count: 3 for quadwords, 8 for all else."""


def assembly(instruction: str) -> str:
    """In the syntax of GNU C, the line's address as operand 0."""
    count = 3 if "stosq" in instruction else 8
    text = instruction.replace("S ", f"lea M, %rdi; lea 32(%0), %rsi; mov ${count}, %ecx; ")
    return text.replace("%", "%%").replace("%%0", "%0").replace("M", "16(%0)")


CLOBBERED = '"rax", "rcx", "rdx", "rbx", "rdi", "rsi", "xmm0", "cc", "memory"'
"""What the instructions change besides the line."""


def seen_by(core: int, findings: Iterable[Finding], touched: Iterable[Touched], expected: Seen) -> Seen:
    """What was seen of an instruction on a core: by the findings on its line, and by what each core touched of it.

    Whether it is atomic is not seen.
    """
    ranges = {(one.read, one.written) for one in touched if one.core == core}
    assert len(ranges) <= 1, expected.instruction
    read, written = ranges.pop() if ranges else ((), ())
    sides = [side for finding in findings for side in (finding.first, finding.second) if side.core == core]
    return expected._replace(read=read, written=written, is_prefetch=any(side.prefetch for side in sides))
