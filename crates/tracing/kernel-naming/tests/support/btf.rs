//! BTF made by hand: an assembler for the format, and a small kernel's types in it.

/// Puts BTF together. Type numbers count from 1 in the order of the calls, each of which returns its number.
pub struct BtfBuilder {
    types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
    base_strings: u32,
}

impl Default for BtfBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// A member: name, type, offset in bits.
pub type MemberRow<'a> = (&'a str, u32, u32);

impl BtfBuilder {
    pub fn new() -> Self {
        Self { types: Vec::new(), strings: vec![0], count: 0, base_strings: 0 }
    }

    /// A module's BTF, which goes on where a kernel's with this many types and string bytes ends.
    pub fn module(base_types: u32, base_strings: u32) -> Self {
        Self { types: Vec::new(), strings: vec![0], count: base_types - 1, base_strings }
    }

    pub fn name(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        self.base_strings + offset
    }

    pub fn word(&mut self, value: u32) {
        self.types.extend_from_slice(&value.to_le_bytes());
    }

    pub fn raw(&mut self, name: &str, kind: u32, vlen: u32, flag: bool, size_or_type: u32) -> u32 {
        let name = self.name(name);
        self.word(name);
        self.word(kind << 24 | vlen | u32::from(flag) << 31);
        self.word(size_or_type);
        self.count += 1;
        self.count
    }

    pub fn integer(&mut self, name: &str, size_bytes: u32) -> u32 {
        let id = self.raw(name, 1, 0, false, size_bytes);
        self.word(size_bytes * 8);
        id
    }

    pub fn pointer(&mut self, target: u32) -> u32 {
        self.raw("", 2, 0, false, target)
    }

    pub fn array(&mut self, element: u32, count: u32) -> u32 {
        let id = self.raw("", 3, 0, false, 0);
        for value in [element, 1, count] {
            self.word(value);
        }
        id
    }

    fn aggregate(&mut self, kind: u32, name: &str, size_bytes: u32, members: &[MemberRow<'_>], flag: bool) -> u32 {
        let id = self.raw(name, kind, members.len() as u32, flag, size_bytes);
        for (name, member, offset) in members {
            let name = self.name(name);
            for value in [name, *member, *offset] {
                self.word(value);
            }
        }
        id
    }

    pub fn structure(&mut self, name: &str, size_bytes: u32, members: &[MemberRow<'_>]) -> u32 {
        self.aggregate(4, name, size_bytes, members, false)
    }

    /// Members of a structure with bit fields have `bits << 24 | offset` for an offset.
    pub fn bit_structure(&mut self, name: &str, size_bytes: u32, members: &[MemberRow<'_>]) -> u32 {
        self.aggregate(4, name, size_bytes, members, true)
    }

    pub fn union(&mut self, name: &str, size_bytes: u32, members: &[MemberRow<'_>]) -> u32 {
        self.aggregate(5, name, size_bytes, members, false)
    }

    pub fn typedef(&mut self, name: &str, target: u32) -> u32 {
        self.raw(name, 8, 0, false, target)
    }

    pub fn constant(&mut self, target: u32) -> u32 {
        self.raw("", 10, 0, false, target)
    }

    pub fn enumeration(&mut self, name: &str, values: &[(&str, u32)]) -> u32 {
        let id = self.raw(name, 6, values.len() as u32, false, 4);
        for (name, value) in values {
            let name = self.name(name);
            self.word(name);
            self.word(*value);
        }
        id
    }

    pub fn variable(&mut self, name: &str, kind: u32) -> u32 {
        let id = self.raw(name, 14, 0, false, kind);
        self.word(1);
        id
    }

    pub fn finish(&self) -> Vec<u8> {
        let mut btf = vec![0x9f, 0xeb, 1, 0];
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        for value in [24, 0, types, types, strings] {
            btf.extend_from_slice(&u32::to_le_bytes(value));
        }
        btf.extend_from_slice(&self.types);
        btf.extend_from_slice(&self.strings);
        btf
    }

    pub fn string_bytes(&self) -> u32 {
        self.strings.len() as u32
    }

    pub fn type_count(&self) -> u32 {
        self.count + 1
    }
}

/// Types as a file system has them: an inode embedded in a larger structure, locks, unions, lists, bit fields.
pub fn small_kernel() -> Vec<u8> {
    let mut btf = BtfBuilder::new();
    let int = btf.integer("int", 4);
    let long = btf.integer("long unsigned int", 8);
    let byte = btf.integer("char", 1);
    let void_pointer = btf.pointer(0);
    let atomic = btf.structure("", 4, &[("counter", int, 0)]);
    let atomic_t = btf.typedef("atomic_t", atomic);
    let lock = btf.structure("spinlock", 4, &[("raw", int, 0)]);
    let spinlock_t = btf.typedef("spinlock_t", lock);
    let list = btf.structure("list_head", 16, &[("next", void_pointer, 0), ("prev", void_pointer, 64)]);
    let rcu = btf.structure("callback_head", 16, &[("next", void_pointer, 0), ("func", void_pointer, 64)]);
    let semaphore =
        btf.structure("rw_semaphore", 32, &[("count", atomic_t, 0), ("owner", long, 64), ("wait_list", list, 128)]);
    let lock_and_count = btf.structure("", 8, &[("lock", spinlock_t, 0), ("count", int, 32)]);
    let lockref_union = btf.union("", 8, &[("lock_count", long, 0), ("", lock_and_count, 0)]);
    let lockref = btf.structure("lockref", 8, &[("", lockref_union, 0)]);
    let nlink = btf.union("", 4, &[("__i_nlink", int, 0), ("i_nlink", int, 0)]);
    let tail = btf.union("", 16, &[("i_rcu", rcu, 0), ("i_dentry", list, 0)]);
    let special = btf.union("", 8, &[("i_pipe", void_pointer, 0), ("i_dir_seq", int, 0)]);
    let constant_lock = btf.constant(spinlock_t);
    let inode = btf.structure(
        "inode",
        96,
        &[
            ("i_state", long, 0),
            ("i_rwsem", semaphore, 64),
            ("", nlink, 320),
            ("i_lock", constant_lock, 352),
            ("", tail, 384),
            ("", special, 512),
            ("i_count", atomic_t, 576),
        ],
    );
    let slots = btf.array(void_pointer, 4);
    let rest = btf.array(long, 0);
    btf.structure(
        "shmem_inode_info",
        144,
        &[("seals", int, 0), ("vfs_inode", inode, 64), ("slots", slots, 832), ("rest", rest, 1088)],
    );
    let name = btf.array(byte, 8);
    btf.structure("dentry", 24, &[("d_lockref", lockref, 0), ("d_iname", name, 64), ("d_flags", int, 128)]);
    btf.bit_structure(
        "task_struct",
        16,
        &[("first", int, 3 << 24), ("second", int, 5 << 24 | 3), ("third", int, 1 << 24 | 8), ("plain", int, 32)],
    );
    let rq = btf.structure("rq", 16, &[("lock", spinlock_t, 0), ("nr_running", int, 64)]);
    let page_tables = btf.structure("", 16, &[("_pt_pad_1", long, 0), ("ptl", spinlock_t, 64)]);
    let cache_page = btf.structure("", 16, &[("mapping", void_pointer, 0), ("index", long, 64)]);
    let page_union = btf.union("", 16, &[("", cache_page, 0), ("", page_tables, 0)]);
    let lists = btf.union("", 16, &[("lru", list, 0), ("pcp_list", list, 0)]);
    let used_page = btf.structure("", 16, &[("", lists, 0)]);
    let tail_page = btf.structure("", 16, &[("compound_head", long, 0), ("compound_order", byte, 64)]);
    let list_union = btf.union("", 16, &[("", used_page, 0), ("", tail_page, 0)]);
    let type_union = btf.union("", 4, &[("_mapcount", atomic_t, 0), ("page_type", int, 0)]);
    btf.structure(
        "page",
        64,
        &[
            ("flags", long, 0),
            ("", page_union, 64),
            ("_refcount", atomic_t, 192),
            ("", type_union, 224),
            ("", list_union, 256),
        ],
    );
    let pivots = btf.array(long, 15);
    let node_slots = btf.array(void_pointer, 16);
    let range = btf.structure(
        "maple_range_64",
        256,
        &[("parent", void_pointer, 0), ("pivot", pivots, 64), ("slot", node_slots, 1024)],
    );
    let spares = btf.array(void_pointer, 30);
    let spare =
        btf.structure("maple_alloc", 256, &[("total", long, 0), ("node_count", int, 64), ("slot", spares, 128)]);
    let all_slots = btf.array(void_pointer, 31);
    let dense = btf.structure("", 256, &[("parent", void_pointer, 0), ("slot", all_slots, 64)]);
    let waiting = btf.structure("", 256, &[("pad", void_pointer, 0), ("rcu", rcu, 64)]);
    let layouts = btf.union("", 256, &[("", dense, 0), ("", waiting, 0), ("mr64", range, 0), ("alloc", spare, 0)]);
    btf.structure("maple_node", 256, &[("", layouts, 0)]);
    btf.structure("slab", 32, &[("__page_flags", long, 0), ("slab_cache", void_pointer, 64)]);
    btf.variable("runqueues", rq);
    let rqs = btf.array(rq, 2);
    btf.variable("bases", rqs);
    btf.enumeration("pageflags", &[("PG_locked", 0), ("PG_slab", 9)]);
    btf.finish()
}
