//! The real kernel: the one that `make setup` unpacked, booted with an init process that makes known objects.

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use kernel_naming::{GuestLayout, GuestMemory, KernelSymbols, KernelTypes, Namer};

/// Bytes of the guest's RAM.
const RAM_MIB: u64 = 256;
/// A boot takes 3 seconds; on a machine that is this much slower something hangs.
const BOOT_LIMIT: Duration = Duration::from_secs(180);
/// Ends what the guest sends. The empty line tells it from a symbol whose name ends so.
const READY: &[u8] = b"\n\nREADY\n";

/// A booted kernel's memory at the moment when its init process waits, and its names.
pub struct Booted {
    pub words: Vec<AtomicU64>,
    pub layout: GuestLayout,
    pub namer: Namer,
    pub vmlinux: PathBuf,
}

impl Booted {
    pub fn memory(&self) -> GuestMemory<'_> {
        GuestMemory::new(&self.words, u64::MAX)
    }
}

/// The booted kernel, once per test program. `None`, said loudly, if `make setup` has prepared none.
pub fn booted() -> Option<&'static Booted> {
    static BOOTED: LazyLock<Option<Booted>> = LazyLock::new(|| {
        let vmlinux = prepared_kernel();
        if vmlinux.is_none() {
            // Straight to standard error: the test harness hides what `eprintln!` writes.
            let _ = writeln!(
                std::io::stderr(),
                "\n*** NOT TESTED: naming on the real kernel, since none is prepared; run `make setup` ***\n"
            );
        }
        vmlinux.map(|vmlinux| boot(&vmlinux))
    });
    BOOTED.as_ref()
}

/// The vmlinux that the cache folder's `kernels/default.json` tells.
fn prepared_kernel() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let kernels = cache.join("commutant").join("kernels");
    let description = fs::read_to_string(kernels.join("default.json")).ok()?;
    let folder = description.split("\"folder\"").nth(1)?.split('"').nth(1)?.to_owned();
    Some(kernels.join(folder).join("vmlinux")).filter(|vmlinux| vmlinux.is_file())
}

/// Ends the emulator when the test is done with it, however it ends.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn boot(vmlinux: &Path) -> Booted {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [archive, ram, console] = ["initramfs", "ram", "console"].map(|name| folder.path().join(name));
    fs::write(&archive, initramfs(&compile_init(folder.path()))).expect("the archive can be written");
    let backend = format!("memory-backend-file,id=ram,size={RAM_MIB}M,share=on,mem-path={}", ram.display());
    let mut emulator = Emulator(
        Command::new("qemu-system-x86_64")
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"])
            .args(["-machine", "pc,memory-backend=ram", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2"])
            .args(["-m", &format!("{RAM_MIB}M"), "-object", &backend])
            .args(["-chardev", "stdio,id=out,signal=off", "-device", "isa-debugcon,chardev=out"])
            .args(["-serial", &format!("file:{}", console.display())])
            // no_timer_check: on a loaded machine the emulated timer's ticks come too late for the check, which panics.
            .args(["-append", "console=ttyS0 nokaslr slab_nomerge no_timer_check panic=-1 quiet"])
            .arg("-kernel")
            .arg(vmlinux)
            .arg("-initrd")
            .arg(&archive)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("qemu-system-x86_64 starts; `make setup` installs it"),
    );
    let output = emulator.0.stdout.take().expect("piped");
    let kallsyms = read_until_ready(output).unwrap_or_else(|| {
        let console = fs::read(&console).unwrap_or_default();
        panic!(
            "the guest ended or hung before it sent its symbols; its console:\n{}",
            String::from_utf8_lossy(&console)
        )
    });
    let words = fs::read(&ram).expect("the RAM file is there");
    drop(emulator);
    let image = fs::read(vmlinux).expect("the kernel can be read");
    let types = KernelTypes::from_elf(&image).expect("the kernel has BTF");
    let symbols = KernelSymbols::parse(&kallsyms).expect("the guest's kallsyms");
    let layout = GuestLayout::derive(&types, &symbols).expect("a kernel that is supported");
    Booted {
        words: words
            .chunks_exact(8)
            .map(|word| AtomicU64::new(u64::from_ne_bytes(std::array::from_fn(|index| word[index]))))
            .collect(),
        layout,
        namer: Namer::new(types, symbols),
        vmlinux: vmlinux.to_owned(),
    }
}

/// What the guest sends until it is ready. `None` if it ends or hangs before.
fn read_until_ready(output: impl std::io::Read + Send + 'static) -> Option<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut received = Vec::new();
        let mut chunk = [0; 1 << 16];
        while !received.ends_with(READY) {
            match output.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(length) => received.extend_from_slice(&chunk[..length]),
            }
        }
        received.truncate(received.len() - READY.len() + 1);
        let _ = sender.send(received);
    });
    receiver.recv_timeout(BOOT_LIMIT).ok()
}

fn compile_init(folder: &Path) -> Vec<u8> {
    let program = folder.join("init");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/init.c");
    let status = Command::new("cc")
        .args(["-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie", "-O1", "-o"])
        .arg(&program)
        .arg(source)
        .status()
        .expect("a C compiler is there: Rust links with it");
    assert!(status.success(), "the init program compiles");
    fs::read(program).expect("the init program")
}

/// A cpio archive (format newc, `Documentation/driver-api/early-userspace/buffer-format.rst`) with `/init`.
fn initramfs(init: &[u8]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, mode, content) in [("init", 0o100_755, init), ("TRAILER!!!", 0, &[][..])] {
        let fields = [0, mode, 0, 0, 1, 0, content.len(), 0, 0, 0, 0, name.len() + 1, 0];
        archive.extend_from_slice(b"070701");
        for field in fields {
            archive.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        archive.extend_from_slice(name.as_bytes());
        archive.push(0);
        pad(&mut archive);
        archive.extend_from_slice(content);
        pad(&mut archive);
    }
    archive
}

fn pad(archive: &mut Vec<u8>) {
    while !archive.len().is_multiple_of(4) {
        archive.push(0);
    }
}
