"""What the tracer sees of each kind of instruction, in user mode: bytes read and written of a line that another core
writes as a whole (docs/reference/trace-format.md, "What is seen")."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from commutant.corpus import PlacedCall, TestCase
from commutant.targets.base import Job
from tests.libraries.building import pair, session
from tests.libraries.test_library import adapter

Bytes = tuple[tuple[int, int], ...]

_SIZES = (("b", "al", 1), ("w", "ax", 2), ("l", "eax", 4), ("q", "rax", 8))


def at(size_bytes: int, offset: int = 16) -> Bytes:
    return ((offset, size_bytes),) if size_bytes else ()


def _read(instruction: str, size_bytes: int) -> tuple[str, Bytes, Bytes]:
    return instruction, at(size_bytes), ()


def _written(instruction: str, size_bytes: int) -> tuple[str, Bytes, Bytes]:
    return instruction, (), at(size_bytes)


def _changed(instruction: str, size_bytes: int) -> tuple[str, Bytes, Bytes]:
    return instruction, at(size_bytes), at(size_bytes)


def _atomic(instruction: str, size_bytes: int) -> tuple[str, Bytes, Bytes]:
    """An atomic access is one write here; in a machine it is a read and a write."""
    return instruction, (), at(size_bytes)


TABLE: tuple[tuple[str, Bytes, Bytes], ...] = (
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
    ("S cld; rep stosb", (), at(8)),
    ("S cld; rep movsb", at(8, 32), at(8)),
    ("S cld; rep stosq", (), at(24)),
    ("S cld; movsl", at(4, 32), at(4)),
    ("S cld; lodsb", at(1, 32), ()),
    ("S cld; scasb", at(1), ()),
    ("leaq M, %rax", (), ()),
    ("nopl M", (), ()),
    # Invisible: QEMU makes nothing of them.
    ("prefetcht0 M", (), ()),
    ("prefetchw M", (), ()),
    ("clflush M", (), ()),
)
"""Instructions, with `M` for 16 bytes behind the line's start, and what they read and write of the line. `S` stands for
its address in RDI, that of its second half in RSI, and a count: 3 for quadwords, 8 for all else."""


def _assembly(instruction: str) -> str:
    count = 3 if "stosq" in instruction else 8
    text = instruction.replace("S ", f"lea M, %rdi; lea 32(%0), %rsi; mov ${count}, %ecx; ")
    return text.replace("%", "%%").replace("%%0", "%0").replace("M", "16(%0)")


def _beside_writer(call: str) -> TestCase:
    test = pair(call)
    test = replace(test, calls=(test.calls[0], PlacedCall("all", {}, 0, 1, 1)))
    return replace(test, id=test.content_id())


def test_each_instruction_is_seen_as_the_table_says(tmp_path: Path) -> None:
    head = "(void *o, const commutant_value *a, commutant_result *r) { (void)o; (void)a;"
    code = ["static struct line { char bytes[64]; } __attribute__((aligned(64))) line;"]
    changed = '"rax", "rcx", "rdx", "rbx", "rdi", "rsi", "xmm0", "cc", "memory"'
    for number, (instruction, _, _) in enumerate(TABLE):
        body = f'__asm__ volatile("{_assembly(instruction)}" :: "r"(&line) : {changed}); commutant_number(r, 0);'
        code.append(f"static void i{number}{head} {body} }}")
    stores = "for (int i = 0; i < 8; i++) ((volatile long *)&line)[i] = 0; commutant_number(r, 0);"
    code.append(f"static void all{head} {stores} }}")
    names = [f"i{number}" for number in range(len(TABLE))]
    calls = "".join(f'{{"{name}()", {name}}}, ' for name in (*names, "all"))
    with session(adapter(tmp_path, calls, "\n".join(code))) as running:
        records = list(running.run([Job(_beside_writer(name), 0) for name in names]))
    seen = []
    for record, (instruction, _, _) in zip(records, TABLE, strict=True):
        assert (record.wrong, record.crashed) == (None, None), instruction
        touched = {(one.read, one.written) for found in record.findings for one in found.touched if one.core == 0}
        assert len(touched) <= 1, instruction
        seen.append((instruction, *(touched.pop() if touched else ((), ()))))
    assert len(TABLE) >= 76
    assert seen == [(instruction, tuple(read), tuple(written)) for instruction, read, written in TABLE]
