"""A Linux guest for tests that runs a script: its files are programs of this host and the libraries that they need."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path, PurePosixPath

from commutant.guest import CpioWriter, Kernel, find_emulator, processor

_MERGED = ("bin", "lib", "lib64", "sbin")
"""Folders of the root that are links into `usr`, as on Debian."""
_TOOLS = ("cat", "chown", "cmp", "cp", "mkdir", "mount", "rm", "setpriv", "sh", "sleep", "stty", "uname")
_COMPILER = ("as", "cc", "gcc", "ld", "make")
_PARTS_OF_GCC = ("cc1", "collect2", "liblto_plugin.so")
_LINKED = ("crt1.o", "Scrt1.o", "crti.o", "crtn.o", "crtbegin.o", "crtbeginS.o", "crtend.o", "crtendS.o")
_LIBRARIES = ("libgcc.a", "libgcc_s.so", "libgcc_s.so.1", "libc.so", "libc.so.6", "libc_nonshared.a")
_COMMAND_LINE = (
    "console=ttyS0 quiet nokaslr mitigations=off lsm=capability apparmor=0 nowatchdog no_timer_check tsc=reliable "
    "panic=-1 oops=panic rcupdate.rcu_cpu_stall_suppress=1"
)
"""As for the guests that run tests (src/commutant/guest/snapshot.py)."""
_MEMORY_MIB = 1024
_ENDED = "the script ended with "
_INIT = f"""#!/bin/sh
export PATH=/usr/bin HOME=/ LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
for module in /modules/*; do test ! -e "$module" || load-module "$module" > /dev/console 2>&1; done
sh -eu /script < /dev/null > /dev/console 2>&1
echo "{_ENDED}$?" > /dev/console
stty -F /dev/console -echo
echo b > /proc/sysrq-trigger
"""
"""Changing a terminal's mode waits until what was written to it is out."""
_LOAD_MODULE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    if (syscall(SYS_finit_module, open(words[count - 1], O_RDONLY), "", 0) == 0) return 0;
    perror(words[count - 1]);
    return 1;
}
"""


class GuestImage:
    """An initramfs in the making, whose files are this host's unless they are given."""

    def __init__(self) -> None:
        """With a shell, some of the small tools, and gcc with make. Those of the host are taken."""
        self._archive = CpioWriter()
        self._names: set[PurePosixPath] = set()
        for name in ("dev", "proc", "sys", "tmp", "modules"):
            self._directory(PurePosixPath(name))
        for name in _MERGED:
            self._directory(PurePosixPath("usr", name))
            self._archive.symbolic_link(name, f"usr/{name}")
        self._archive.character_device("dev/console", 5, 1)
        self._archive.character_device("dev/null", 1, 3)
        self._add_compiler()

    def directory(self, name: str) -> None:
        """Adds an empty directory."""
        self._directory(PurePosixPath(name))

    def file(self, name: str, content: bytes, executable: bool = False) -> None:
        """Adds a file with this content, by its name without a slash before it."""
        path = PurePosixPath(name)
        if path not in self._names:
            self._directory(path.parent)
            self._names.add(path)
            (self._archive.program if executable else self._archive.file)(str(path), content)

    def program(self, host: Path, name: str = "") -> None:
        """Adds a program of the host under its own path or another name, and the libraries that it is linked with."""
        self._copy(host, name)
        linked = subprocess.run(["ldd", host], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", linked):
            self._copy(Path(library))

    def module(self, name: str, content: bytes) -> None:
        """Adds a module of the kernel, which is loaded before the script runs."""
        self.file(f"modules/{name}.ko", content)

    def finish(self, script: str) -> bytes:
        """The archive, with a first program that runs the script by `sh -eu` as root."""
        self.file("script", script.encode())
        self.file("init", _INIT.encode(), executable=True)
        with tempfile.TemporaryDirectory() as folder:
            source, built = Path(folder, "load.c"), Path(folder, "load")
            source.write_text(_LOAD_MODULE)
            subprocess.run(["gcc", "-O1", "-static", "-o", built, source], check=True)
            self.file("usr/bin/load-module", built.read_bytes(), executable=True)
        return self._archive.finish()

    def _add_compiler(self) -> None:
        for name in (*_TOOLS, *_COMPILER):
            host = shutil.which(name)
            assert host is not None, f"{name} is installed"
            self.program(Path(host), f"usr/bin/{name}")
        for name in _PARTS_OF_GCC:
            self.program(
                _asked(f"-print-prog-name={name}" if name != "liblto_plugin.so" else f"-print-file-name={name}")
            )
        for name in (*_LINKED, *_LIBRARIES, "include/stddef.h"):
            self._copy(_asked(f"-print-file-name={name}"))
        self._copy(Path("/usr/include/stdc-predef.h"))

    def _directory(self, path: PurePosixPath) -> None:
        for parent in (*reversed(path.parents), path):
            if parent != PurePosixPath() and parent not in self._names:
                self._names.add(parent)
                self._archive.directory(str(parent))

    def _copy(self, host: Path, name: str = "") -> None:
        path = PurePosixPath(name or os.path.normpath(host).lstrip("/"))
        if path.parts[0] in _MERGED:
            path = PurePosixPath("usr") / path
        self.file(str(path), host.read_bytes(), os.access(host, os.X_OK))


def _asked(option: str) -> Path:
    """What gcc says of where a part of it is."""
    return Path(subprocess.run(["gcc", option], capture_output=True, text=True, check=True).stdout.strip())


def run_in_guest(kernel: Kernel, image: bytes, seconds: float) -> str:
    """Boots a kernel with an image; returns what the console shows. Fails if the script does, or after that time."""
    emulator = find_emulator()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "vmlinux").write_bytes(kernel.read())
        (folder / "initramfs").write_bytes(image)
        command = [
            *(emulator.path, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"),
            *("-machine", "pc,hpet=off", "-accel", "tcg,thread=single", "-cpu", processor(emulator)),
            *("-smp", "2", "-m", str(_MEMORY_MIB), "-serial", "stdio"),
            *("-kernel", str(folder / "vmlinux"), "-initrd", str(folder / "initramfs"), "-append", _COMMAND_LINE),
        ]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    assert f"{_ENDED}0\n" in done.stdout.replace("\r", ""), f"{done.stdout[-4000:]}{done.stderr[-2000:]}"
    return done.stdout.replace("\r", "")
