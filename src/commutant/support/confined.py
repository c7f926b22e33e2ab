"""A program that can change nothing outside of itself: the launcher that takes its rights away, then becomes it.

`start_program(is_confined=True)` starts it as `python -I -S confined.py PARENT COMMAND...`; it needs Python's library
alone. Of the rights of its user a confined program keeps that to read files. It has

- **files**: all of them for reading. In user and mount namespaces of its own nothing can be written, but in `/dev/shm`,
  which is empty, holds `SCRATCH_BYTES` and goes with the program. Where the system grants no namespaces, Landlock
  forbids writing, and there is no such folder. Descriptors that it was given stay as they are.
- **processes**: none but itself, and as many threads as `_THREADS` in such namespaces. It may send signals to itself
  alone, and look into the memory of no other process.
- **the network**: none. It makes no socket.

A filter of system calls (seccomp) sees to the last two, and keeps the first. Without a command the launcher tells which
of these means the system has. Linux: user_namespaces(7), landlock(7), seccomp(2).
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys

SCRATCH_BYTES = 256 << 20
_THREADS = 1024

_CLONE_NEWUSER, _CLONE_NEWNS, _CLONE_NEWNET, _CLONE_NEWIPC = 0x1000_0000, 0x2_0000, 0x4000_0000, 0x800_0000
_CLONE_THREAD = 0x1_0000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 0x4000, 1 << 18
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 1
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
_MOUNT_SETATTR, _LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 442, 444, 446

_LANDLOCK_WRITES = (1 << 1) | sum(1 << bit for bit in range(4, 13))
"""Of `linux/landlock.h`: writing, and all that makes or removes names (its first version); no rule allows any."""
_LANDLOCK_LATER = {2: 1 << 13, 3: 1 << 14}
"""What later versions added: links and names across folders, truncation."""

_CLONE, _CLONE3, _KILL, _TGKILL, _PRLIMIT = 56, 435, 62, 234, 302
_MEMFD_CREATE = 319
_FORBIDDEN = (
    *(57, 58),  # fork, vfork
    *(29, 30, 64, 68, 240),  # shmget, shmat, semget, msgget, mq_open: memory that no limit counts
    *(41, 425),  # socket, io_uring_setup, which makes other calls
    *(101, 310, 311, 312, 440),  # ptrace, process_vm_readv, process_vm_writev, kcmp, process_madvise
    *(129, 200, 297, 424, 434, 438),  # rt_sigqueueinfo, tkill, rt_tgsigqueueinfo, pidfd_*
    *(155, 161, 165, 166, 272, 308),  # pivot_root, chroot, mount, umount2, unshare, setns
    *range(428, 434),  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
    *(_MOUNT_SETATTR, 298, 321, 323),  # perf_event_open, bpf, userfaultfd
    *(175, 176, 246, 248, 249, 250, 313, 320),  # modules, kexec, keys
    *(140, 141, 144, 203, 251, 314),  # priorities and processors of others
)
"""System calls of x86-64 (`asm/unistd_64.h`) that fail with EPERM."""

_libc = ctypes.CDLL(None, use_errno=True)


def _called(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter_namespaces() -> None:
    """Nothing can be written from now on but in an empty /dev/shm, and there is no network. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    _called(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWNET | _CLONE_NEWIPC))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - a program of few imports, started per session
            file.write(text)
    _called(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    attributes = ctypes.create_string_buffer(struct.pack("<4Q", _MOUNT_ATTR_RDONLY, 0, 0, 0))
    _called(_libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, attributes, ctypes.c_size_t(32)))
    options = f"size={SCRATCH_BYTES},mode=700".encode()
    _called(_libc.mount(b"scratch", b"/dev/shm", b"tmpfs", _MS_NOSUID | _MS_NODEV, options))


def forbid_writing() -> None:
    """No file can be opened for writing from now on, nor any name made or removed (Landlock). Raises OSError."""
    version = _libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    _called(version)
    handled = _LANDLOCK_WRITES | sum(right for since, right in _LANDLOCK_LATER.items() if version >= since)
    attributes = ctypes.create_string_buffer(struct.pack("<Q", handled))
    rules = _libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(8), 0)
    _called(rules)
    try:
        _called(_libc.syscall(_LANDLOCK_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)


def _statement(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction of a filter (`struct sock_filter`)."""
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _filter(process: int) -> bytes:
    """The filter for a process of this id: jumps lead forward, each comparison directly to its answer."""
    load, equals, at_least, has_bits, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, kill = _statement(answer, 0x7FFF_0000), _statement(answer, 0x8000_0000)
    not_permitted, no_such_call = _statement(answer, 0x5_0001), _statement(answer, 0x5_0026)  # EPERM, ENOSYS
    number, architecture, first = (_statement(load, offset) for offset in (0, 4, 16))
    parts = [architecture, _statement(equals, 0xC000_003E, 1, 0), kill, number]  # AUDIT_ARCH_X86_64
    parts += [_statement(at_least, 0x4000_0000, 0, 1), not_permitted]  # x32
    # glibc does without what the kernel does not know: clone3, whose flags no filter sees; and QEMU without anonymous
    # files, which no limit counts.
    for call in (_CLONE3, _MEMFD_CREATE):
        parts += [_statement(equals, call, 0, 1), no_such_call]
    for call in _FORBIDDEN:
        parts += [_statement(equals, call, 0, 1), not_permitted]
    parts += [_statement(equals, _CLONE, 0, 4), first, _statement(has_bits, _CLONE_THREAD, 1, 0), not_permitted, allow]
    for call, processes in ((_KILL, (process,)), (_TGKILL, (process,)), (_PRLIMIT, (0, process))):
        answers = [part for one in processes for part in (_statement(equals, one, 0, 1), allow)]
        parts += [_statement(equals, call, 0, len(answers) + 2), first, *answers, not_permitted]
    return b"".join([*parts, allow])


def filter_calls() -> None:
    """Forbids system calls by which a program reaches others, for this process forever. Raises OSError."""
    program = ctypes.create_string_buffer(_filter(os.getpid()))
    count = (len(program) - 1) // 8
    described = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", count, ctypes.addressof(program)))
    _called(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _called(_libc.prctl(_PR_SET_SECCOMP, 2, described, 0, 0))


def confine() -> list[str]:
    """Takes this process's rights away, as far as the system has the means; tells which it had."""
    had = []
    try:
        enter_namespaces()
        had.append("namespaces")
        resource.setrlimit(resource.RLIMIT_NPROC, (_THREADS, _THREADS))
    except OSError:
        pass
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # those of the namespaces go with `exec`
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for layer, take in (("landlock", forbid_writing), ("seccomp", filter_calls)):
        if layer == "landlock" and had:
            continue
        try:
            take()
            had.append(layer)
        except OSError:
            pass
    return had


def main(arguments: list[str]) -> None:
    """Becomes the command; with no command, prints the means that this system has."""
    had = confine()
    if not arguments:
        print(*had)
        return
    parent, *command = arguments
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # new rights in namespaces end what was asked before
    if os.getppid() != int(parent):
        return
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]} does not start: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
