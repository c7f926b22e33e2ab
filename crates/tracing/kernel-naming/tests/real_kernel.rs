//! Naming on the kernel that `make setup` prepares, booted: known objects are found in its memory by walking from its
//! symbols, and must get the names that they have in the kernel's source.

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use kernel_naming::{CaptureKind, ObjectCapture, Sharing, Side, WindowView};
use support::kernel::{Booted, booted};

const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
const IMAGE: u64 = 0xffff_ffff_8000_0000;

/// Reads structures by the names of their fields, with nothing of the code under test but BTF's offsets.
struct Reader<'a> {
    guest: &'a Booted,
}

impl Reader<'_> {
    fn word(&self, address: u64) -> u64 {
        let physical = if address >= IMAGE { address - IMAGE } else { address.wrapping_sub(DIRECT_MAP) };
        self.guest.memory().read_u64(physical).unwrap_or_else(|| panic!("{address:#x} is in RAM"))
    }

    fn offset(&self, structure: &str, field: &str) -> u64 {
        let member = self.guest.namer.types().member(structure, field);
        member.unwrap_or_else(|| panic!("{structure}.{field}")).offset_bytes
    }

    fn field(&self, object: u64, structure: &str, field: &str) -> u64 {
        self.word(object + self.offset(structure, field))
    }

    fn symbol(&self, name: &str) -> u64 {
        self.guest.namer.symbols().address(name).unwrap_or_else(|| panic!("symbol {name}"))
    }

    fn per_cpu(&self, cpu: u64, variable: &str) -> u64 {
        self.word(self.symbol("__per_cpu_offset") + 8 * cpu).wrapping_add(self.symbol(variable))
    }

    /// All tasks but `init_task`, by their names.
    fn tasks(&self) -> BTreeMap<String, u64> {
        let (first, links) = (self.symbol("init_task"), self.offset("task_struct", "tasks"));
        let mut tasks = BTreeMap::new();
        let mut task = self.word(first + links) - links;
        while task != first {
            let comm = task + self.offset("task_struct", "comm");
            let bytes = [self.word(comm).to_le_bytes(), self.word(comm + 8).to_le_bytes()].concat();
            let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            tasks.insert(String::from_utf8_lossy(name).into_owned(), task);
            task = self.word(task + links) - links;
        }
        tasks
    }

    fn init(&self) -> u64 {
        self.tasks()["naming-test"]
    }

    /// The super block of the mounted tmpfs: the last one made with `shmem_ops`.
    fn tmpfs(&self) -> u64 {
        let (head, links) = (self.symbol("super_blocks"), self.offset("super_block", "s_list"));
        let mut found = None;
        let mut node = self.word(head);
        while node != head {
            if self.field(node - links, "super_block", "s_op") == self.symbol("shmem_ops") {
                found = Some(node - links);
            }
            node = self.word(node);
        }
        found.expect("a tmpfs is mounted")
    }
}

/// Object, short and full field of 4 or 8 bytes.
fn name(guest: &Booted, address: u64, size_bytes: u64) -> (String, String, String) {
    let mut view = WindowView::new(guest.memory(), &guest.layout);
    let name = guest.namer.name(&view.capture(address), address, size_bytes);
    assert!(name.known, "{address:#x}: {name:?}");
    (name.object, name.field, name.full_field)
}

/// Asserts the name of one field of an object.
fn assert_field(reader: &Reader<'_>, object: u64, at: (&str, &str), size_bytes: u64, expected: (&str, &str, &str)) {
    let address = object + reader.offset(at.0, at.1);
    let (structure, field, full_field) = name(reader.guest, address, size_bytes);
    assert_eq!((structure.as_str(), field.as_str(), full_field.as_str()), expected, "{}.{}", at.0, at.1);
}

#[test]
fn recognises_its_kernel() {
    let Some(guest) = booted() else { return };
    assert!(WindowView::new(guest.memory(), &guest.layout).holds_kernel());
    let again = kernel_naming::GuestLayout::parse(&guest.layout.to_text()).expect("its own text");
    assert_eq!(again, guest.layout);
}

#[test]
fn names_objects_of_typed_caches() {
    let Some(guest) = booted() else { return };
    let reader = Reader { guest };
    let init = reader.init();
    assert_field(&reader, init, ("task_struct", "nsproxy"), 8, ("struct task_struct", "nsproxy", "nsproxy"));
    let cred = reader.field(init, "task_struct", "cred");
    assert_field(&reader, cred, ("cred", "usage"), 4, ("struct cred", "usage", "usage"));
    let files = reader.field(init, "task_struct", "files");
    assert_field(&reader, files, ("files_struct", "file_lock"), 4, ("struct files_struct", "file_lock", "file_lock"));
    assert_field(&reader, files, ("files_struct", "next_fd"), 4, ("struct files_struct", "next_fd", "next_fd"));
    let mm = reader.field(init, "task_struct", "mm");
    assert_field(&reader, mm, ("mm_struct", "mmap_lock"), 8, ("struct mm_struct", "mmap_lock", "mmap_lock.count"));
    let fs = reader.field(init, "task_struct", "fs");
    let root = reader.field(fs, "fs_struct", "root.dentry");
    assert_field(&reader, root, ("dentry", "d_lockref"), 8, ("struct dentry", "d_lockref", "d_lockref.lock_count"));
    assert_field(&reader, root, ("dentry", "d_lockref"), 4, ("struct dentry", "d_lockref", "d_lockref.lock"));
    let mount = reader.field(fs, "fs_struct", "root.mnt");
    assert_field(&reader, mount, ("vfsmount", "mnt_flags"), 4, ("struct vfsmount", "mnt_flags", "mnt_flags"));
}

#[test]
fn names_inodes_alike_in_every_file_system() {
    let Some(guest) = booted() else { return };
    let reader = Reader { guest };
    let fs = reader.field(reader.init(), "task_struct", "fs");
    let root = reader.field(reader.field(fs, "fs_struct", "root.dentry"), "dentry", "d_inode");
    let tmpfs = reader.field(reader.field(reader.tmpfs(), "super_block", "s_root"), "dentry", "d_inode");
    for inode in [root, tmpfs] {
        assert_field(&reader, inode, ("inode", "i_rwsem"), 8, ("struct inode", "i_rwsem", "i_rwsem.count"));
        assert_field(&reader, inode, ("inode", "i_size"), 8, ("struct inode", "i_size", "i_size"));
        assert_field(&reader, inode, ("inode", "i_nlink"), 4, ("struct inode", "i_nlink", "i_nlink"));
        assert_field(&reader, inode, ("inode", "i_count"), 4, ("struct inode", "i_count", "i_count"));
        assert_field(&reader, inode, ("inode", "i_data.nrpages"), 8, ("struct address_space", "nrpages", "nrpages"));
    }
    let container = tmpfs - reader.offset("shmem_inode_info", "vfs_inode");
    let swapped = ("struct shmem_inode_info", "swapped", "swapped");
    assert_field(&reader, container, ("shmem_inode_info", "swapped"), 8, swapped);
}

#[test]
fn types_what_kmalloc_holds() {
    let Some(guest) = booted() else { return };
    let reader = Reader { guest };
    let tmpfs = reader.tmpfs();
    let list_lock = ("struct super_block", "s_inode_list_lock", "s_inode_list_lock");
    assert_field(&reader, tmpfs, ("super_block", "s_inode_list_lock"), 4, list_lock);
    let information = reader.field(tmpfs, "super_block", "s_fs_info");
    let stat_lock = ("struct shmem_sb_info", "stat_lock", "stat_lock");
    assert_field(&reader, information, ("shmem_sb_info", "stat_lock"), 4, stat_lock);
    let files = reader.field(reader.init(), "task_struct", "files");
    let table = reader.field(files, "files_struct", "fdt");
    assert_ne!(table, files + reader.offset("files_struct", "fdtab"), "the init process has a large table");
    assert_field(&reader, table, ("fdtable", "max_fds"), 4, ("struct fdtable", "max_fds", "max_fds"));
    let bits = reader.field(table, "fdtable", "open_fds");
    assert_eq!(name(guest, bits, 8).0, "fdtable.open_fds");
    let array = reader.field(table, "fdtable", "fd");
    assert_eq!(name(guest, array + 8 * 3, 8).0, "fdtable.fd[]");
    let file = reader.word(array + 8 * 200);
    assert_field(&reader, file, ("file", "f_count"), 8, ("struct file", "f_count", "f_count"));
    let pipe = reader.field(file, "file", "private_data");
    assert_field(&reader, pipe, ("pipe_inode_info", "mutex"), 8, ("struct pipe_inode_info", "mutex", "mutex.owner"));
    let page = reader.field(pipe, "pipe_inode_info", "bufs");
    let page = reader.field(page, "pipe_buffer", "page");
    let frame = (page - reader.word(reader.symbol("vmemmap_base"))) / 64;
    assert_eq!(
        name(guest, DIRECT_MAP + frame * 4096 + 8, 8),
        ("pipe_buffer.page".to_owned(), String::new(), "+0x8".to_owned())
    );
    let proxy = reader.field(reader.init(), "task_struct", "nsproxy");
    let namespace = if proxy == reader.symbol("init_nsproxy") { reader.field(proxy, "nsproxy", "mnt_ns") } else { 0 };
    assert_field(&reader, namespace, ("mnt_namespace", "event"), 8, ("struct mnt_namespace", "event", "event"));
}

#[test]
fn names_global_and_per_cpu_variables() {
    let Some(guest) = booted() else { return };
    let reader = Reader { guest };
    let lock = reader.symbol("super_blocks");
    assert_eq!(name(guest, lock, 8), ("super_blocks".to_owned(), String::new(), String::new()));
    assert_eq!(name(guest, lock + 8, 8).2, "+0x8");
    let init_task = reader.symbol("init_task");
    assert_field(&reader, init_task, ("task_struct", "tasks"), 8, ("init_task", "tasks", "tasks.next"));
    for cpu in 0..2 {
        let queue = reader.per_cpu(cpu, "runqueues");
        assert_field(&reader, queue, ("rq", "nr_running"), 4, ("per-CPU runqueues", "nr_running", "nr_running"));
        let task = reader.per_cpu(cpu, "current_task");
        assert_eq!(name(guest, task, 8).0, "per-CPU current_task");
    }
}

#[test]
fn names_pages_and_their_structures() {
    let Some(guest) = booted() else { return };
    let reader = Reader { guest };
    let tmpfs_root = reader.field(reader.tmpfs(), "super_block", "s_root");
    let vmemmap = reader.word(reader.symbol("vmemmap_base"));
    let page = vmemmap + (tmpfs_root - DIRECT_MAP) / 4096 * 64;
    let mut view = WindowView::new(guest.memory(), &guest.layout);
    let capture = view.capture(page);
    assert_eq!(capture.capture_kind(), CaptureKind::StructPage);
    assert_eq!(name(guest, page, 8).0, "struct slab");
    // The program of the init process is one page of the root file system; its text is mapped.
    let mm = reader.field(reader.init(), "task_struct", "mm");
    let top = reader.field(mm, "mm_struct", "pgd");
    let text = reader.field(mm, "mm_struct", "start_code");
    let mut table = top;
    assert_eq!(name(guest, top, 8).0, "pgd_t[]");
    for shift in [39, 30, 21] {
        let entry = reader.word(table + 8 * ((text >> shift) & 511));
        table = DIRECT_MAP + (entry & 0x000f_ffff_ffff_f000);
        // Linux marks the two lowest levels only.
        if shift < 39 {
            assert_eq!(name(guest, table, 8).0, "page table", "level of bit {shift}");
        }
    }
    let frame = (table - DIRECT_MAP) / 4096;
    assert_eq!(name(guest, vmemmap + 64 * frame + reader.offset("page", "ptl"), 4).1, "ptl");
    let entry = reader.word(table + 8 * ((text >> 12) & 511));
    let page = DIRECT_MAP + (entry & 0x000f_ffff_ffff_f000);
    assert_eq!(name(guest, page, 8).0, "page cache page");
    assert_eq!(
        name(guest, vmemmap + (page - DIRECT_MAP) / 4096 * 64 + reader.offset("page", "_refcount"), 4).1,
        "_refcount"
    );
}

#[test]
fn tells_whose_stack_it_is() {
    let Some(guest) = booted() else { return };
    let reader = Reader { guest };
    let mut view = WindowView::new(guest.memory(), &guest.layout);
    let tasks = reader.tasks();
    assert!(tasks.len() > 10, "kernel threads run");
    for (comm, task) in &tasks {
        let stack = reader.field(*task, "task_struct", "stack");
        let capture = view.capture(stack + 0x3f00);
        assert_eq!((capture.capture_kind(), capture.cache_name()), (CaptureKind::Stack, comm.as_str()));
        assert_eq!((capture.object, capture.owner), (stack, *task));
        assert_eq!(guest.namer.name(&capture, stack + 0x3f00, 8).object, "kernel stack");
    }
}

#[test]
fn names_functions_and_pairs() {
    let Some(guest) = booted() else { return };
    let reader = Reader { guest };
    let open = reader.symbol("do_sys_openat2");
    let function = guest.namer.function(open + 0x10).expect("a function");
    assert_eq!((function.to_string().as_str(), function.identity.as_str()), ("do_sys_openat2+0x10", "do_sys_openat2"));
    assert_eq!(
        guest.namer.caller(open),
        guest.namer.function(open - 1).map(|mut before| {
            before.offset += 1;
            before
        })
    );
    let inode = reader.field(reader.field(reader.tmpfs(), "super_block", "s_root"), "dentry", "d_inode");
    let pair = |first: (&str, u64), second: (&str, u64)| {
        let mut view = WindowView::new(guest.memory(), &guest.layout);
        let at = |field: &str| inode + reader.offset("inode", field);
        let captures: [ObjectCapture; 2] = [view.capture(at(first.0)), view.capture(at(second.0))];
        let side = |capture, field: &str, size_bytes| Side { capture, address: at(field), size_bytes, function: "" };
        let pair = guest.namer.name_pair(side(&captures[0], first.0, first.1), side(&captures[1], second.0, second.1));
        (pair.object, pair.field, pair.sharing)
    };
    let inode_field = |field: &str, sharing| ("struct inode".to_owned(), field.to_owned(), sharing);
    assert_eq!(pair(("i_rwsem", 8), ("i_rwsem", 8)), inode_field("i_rwsem", Sharing::True));
    assert_eq!(
        pair(("i_rwsem.owner", 8), ("i_rwsem", 8)),
        inode_field("i_rwsem.count | i_rwsem.owner", Sharing::False)
    );
    assert_eq!(pair(("i_size", 8), ("i_mtime", 8)), inode_field("i_mtime | i_size", Sharing::False));
    assert_eq!(pair(("i_mtime", 16), ("i_mtime.tv_sec", 8)), inode_field("i_mtime", Sharing::True));
}

#[test]
fn every_slab_cache_in_use_is_typed_or_kmalloc() {
    let Some(guest) = booted() else { return };
    let mut view = WindowView::new(guest.memory(), &guest.layout);
    let mut untyped = BTreeMap::new();
    let mut objects = 0;
    for page in (0..guest.words.len() as u64 * 8).step_by(4096) {
        let address = DIRECT_MAP + page;
        let capture = view.capture(address);
        if capture.capture_kind() != CaptureKind::Slab {
            continue;
        }
        objects += 1;
        let object = guest.namer.name(&capture, address, 8).object;
        if !object.starts_with("struct ") && !capture.cache_name().starts_with("kmalloc-") {
            *untyped.entry(capture.cache_name().to_owned()).or_insert(0) += 1;
        }
    }
    assert!(objects > 1000, "{objects} slab pages");
    // Caches of memory without one type, or of types that no BTF describes.
    let expected = ["Acpi-", "dmaengine-unmap-", "sgpool-", "lsm_"];
    untyped.retain(|cache, _| !expected.iter().any(|start| cache.starts_with(start)));
    assert!(untyped.is_empty(), "{untyped:?}");
}

/// Offsets according to `pahole`, which reads the same BTF with code of its own.
#[test]
fn agrees_with_pahole() {
    let Some(guest) = booted() else { return };
    let types = guest.namer.types();
    let mut compared = 0;
    for structure in ["inode", "dentry", "file", "super_block", "files_struct", "mm_struct", "cred", "mount", "pid"] {
        let output = Command::new("pahole").args(["-F", "btf", "-C", structure]).arg(&guest.vmlinux).output();
        let output = output.expect("pahole, which `make setup` installs");
        let id = types.structure(structure).expect("the structure");
        for (field, offset, size) in pahole_fields(&String::from_utf8_lossy(&output.stdout)) {
            let steps = types.path(id, offset, size);
            let first = steps.first().map_or("", |step| step.name.trim_end_matches("[]"));
            assert_eq!(first, field, "{structure}+{offset}, {size} bytes");
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared} fields compared");
}

/// Fields of the outermost level, not in unions: name, offset, size.
fn pahole_fields(text: &str) -> Vec<(String, u64, u64)> {
    let outermost = text.lines().filter(|line| line.starts_with('\t') && !line.starts_with("\t\t"));
    let fields = outermost.filter_map(|line| {
        let (declaration, comment) = line.split_once("/*")?;
        let mut numbers = comment.trim_end().trim_end_matches("*/").split_whitespace();
        let (offset, size) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let declaration = declaration.split("__attribute__").next()?.trim().trim_end_matches(';');
        let plain = !declaration.contains(['(', ':', '}', '{']) && size > 0;
        let name = declaration.rsplit([' ', '*']).next()?.split('[').next()?.to_owned();
        (plain && !name.is_empty()).then_some((name, offset, size))
    });
    fields.collect()
}
