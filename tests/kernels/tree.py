"""A source tree that is built as Linux is, in a second: three files, two headers, and a vmlinux with types."""

from __future__ import annotations

import struct
from pathlib import Path

from commutant.guest import Kernel
from commutant.kernels.source import Source

VERSION = "6.1.192"

FILES = {
    "Kbuild": "",
    "kernel/Makefile": "",
    "Makefile": """\
VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 192
EXTRAVERSION =
olddefconfig:
	@test -f $(O)/.config && echo '# seen' >> $(O)/.config
vmlinux $(filter %.o,$(MAKECMDGOALS)):
	@$(MAKE) --no-print-directory -C $(O) -f ../Makefile.build $@
.PHONY: vmlinux olddefconfig
""",
    "Makefile.build": """\
.DELETE_ON_ERROR:
OBJECTS := init/version.o fs/inode.o fs/file.o
vmlinux: $(OBJECTS)
	@gcc -static -nostdlib -Wl,-e,start,--build-id=none -o vmlinux $(OBJECTS)
	@LLVM_OBJCOPY=objcopy pahole -J vmlinux
$(sort $(OBJECTS) $(filter %.o,$(MAKECMDGOALS))): %.o: ../%.c
	@mkdir -p $(@D)
	@echo "  CC      $@"
	@gcc -g -Og -ffreestanding -fno-pie -I../include -MD -MF $@.d -c $< -o $@
	@{ echo "source_$@ := $<"; echo; echo "deps_$@ := \\\\"; } > $(@D)/.$(@F).cmd
	@tr ' ' '\\n' < $@.d | sed -n 's,^\\(\\.\\./.*\\),  \\1 \\\\,p' >> $(@D)/.$(@F).cmd
-include $(OBJECTS:=.d)
""",
    "include/linux/fs.h": """\
#ifndef FS_H
#define FS_H
#include <linux/types.h>
struct inode {
	long i_size;
	struct count i_count;
	unsigned int i_flags : 3;
	long i_private;	/* whatever */
};
static inline long size_of(struct inode *inode)
{
	return inode->i_size;
}
#define private_of(inode) ((inode)->i_private)
#endif
""",
    "include/linux/types.h": "#ifndef TYPES_H\n#define TYPES_H\nstruct count { int value; };\n#endif\n",
    "init/version.c": """\
#include <linux/types.h>
const char banner[] = "Linux version 6.1.192-commutant (x) #1 SMP";
struct count starts;
void start(void) { starts.value++; }
asm(".section .note.Xen,\\"a\\",@note\\n.long 4, 8, 18\\n.asciz \\"Xen\\"\\n.quad 0\\n.previous");
""",
    "fs/inode.c": "#include <linux/fs.h>\nstruct inode root;\nlong whole(void) { return size_of(&root); }\n",
    "fs/file.c": "#include <linux/fs.h>\nextern struct inode root;\nlong own(void) { return private_of(&root); }\n",
}

SWAP = """\
Subject: [PATCH] fs: exchange i_size and i_private

---
--- a/include/linux/fs.h
+++ b/include/linux/fs.h
@@ -2,10 +2,10 @@
 #define FS_H
 #include <linux/types.h>
 struct inode {
-→long i_size;
+→long i_private;→/* whatever */
 →struct count i_count;
 →unsigned int i_flags : 3;
-→long i_private;→/* whatever */
+→long i_size;
 };
 static inline long size_of(struct inode *inode)
 {
""".replace("→", "\t")


def make_tree(folder: Path) -> Source:
    """The tree in a new folder, as a source."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Source(str(folder), VERSION, "0" * 64, folder)


def reference(vmlinux: Path) -> Kernel:
    """A vmlinux as the reference kernel."""
    import hashlib

    data = vmlinux.read_bytes()
    return Kernel("6.1.0-test", "test", vmlinux, hashlib.sha256(data).hexdigest(), len(data))


def patch_of(file: str, line: str, new: str, *, number: int) -> str:
    """A patch that puts another line in place of one, without context."""
    return f"Subject: another line\n\n--- a/{file}\n+++ b/{file}\n@@ -{number} +{number} @@\n-{line}\n+{new}\n"


def empty_btf() -> bytes:
    """BTF without a type."""
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, 0, 0, 1) + b"\0"
