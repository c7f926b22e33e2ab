use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use kernel_naming::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let types = KernelTypes::from_elf(&std::fs::read(&a[1]).unwrap()).unwrap();
    let t = std::time::Instant::now();
    let symbols = KernelSymbols::parse(&std::fs::read(&a[2]).unwrap()).unwrap();
    eprintln!("symbols {:?}", t.elapsed());
    let layout = GuestLayout::derive(&types, &symbols).unwrap();
    assert_eq!(GuestLayout::parse(&layout.to_text()).unwrap(), layout);
    let words: Vec<AtomicU64> = std::fs::read(&a[3]).unwrap().chunks_exact(8)
        .map(|w| AtomicU64::new(u64::from_ne_bytes(std::array::from_fn(|i| w[i])))).collect();
    let memory = GuestMemory::new(&words, u64::MAX);
    let mut view = WindowView::new(memory, &layout);
    println!("kernel {}", view.holds_kernel());
    let namer = Namer::new(types, symbols);
    let mut slabs: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut pages: BTreeMap<String, usize> = BTreeMap::new();
    let t = std::time::Instant::now();
    let mut n = 0;
    for frame in 0..words.len() as u64 / 512 {
        let start = 0xffff_8880_0000_0000 + frame * 4096;
        let mut at = start;
        while at < start + 4096 {
            let c = view.capture(at);
            n += 1;
            let name = namer.name(&c, if c.capture_kind()==CaptureKind::Slab {at.max(c.object)} else {at}, 8);
            if c.capture_kind() == CaptureKind::Slab {
                *slabs.entry((c.cache_name().to_owned(), name.object)).or_default() += 1;
                at = (c.object + c.object_size.max(8)).max(at + 8);
            } else {
                *pages.entry(format!("{:?} {:?} {}", c.capture_kind(), c.page(), name.object)).or_default() += 1;
                break;
            }
        }
    }
    eprintln!("{n} captures {:?}", t.elapsed());
    let t = std::time::Instant::now();
    for _ in 0..1000 { let mut v = WindowView::new(memory, &layout); std::hint::black_box(v.capture(0xffff_8880_0010_0000)); }
    eprintln!("view {:?}/1000", t.elapsed());
    let mut k = 0; let mut at = 0xffff_8880_0000_0000u64;
    let t0 = loop { let c = view.capture(at); if c.cache_name() == "kmalloc-128" && c.type_name().is_empty() { k+=1; if k==50 {break at;} } at += 64; };
    let t = std::time::Instant::now();
    for _ in 0..1000 { let mut v = WindowView::new(memory, &layout); std::hint::black_box(v.capture(t0)); }
    eprintln!("walk {:?}/1000", t.elapsed());
    for (s, n) in [("inode",632u64),("dentry",192),("file",232),("page",64),("slab",64),("super_block",1472),("mm_struct",1000),("task_struct",3000),("files_struct",704),("shmem_inode_info",712)] {
        if a.len() < 5 { break; }
        let mut c = ObjectCapture::unknown(0xffff_8880_0000_0000);
        c.kind = CaptureKind::Slab as u32; c.object = c.address; c.object_size = 100000;
        c.type_name[..s.len()].copy_from_slice(s.as_bytes()); c.typed_start = c.object;
        println!("== {s}");
        for o in (0..n).step_by(4) { 
            let x = namer.name(&c, c.object+o, 4); let y = namer.name(&c, c.object+o, 8);
            println!("{o:5} {}.{} ({}) | {}.{} ({})", x.object, x.field, x.full_field, y.object, y.field, y.full_field);
        }
    }
    for (k, v) in &slabs { println!("{v:7} {} -> {}", k.0, k.1); }
    for (k, v) in &pages { println!("{v:7} {k}"); }
}
