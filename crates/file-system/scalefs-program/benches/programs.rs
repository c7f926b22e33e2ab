//! What calls of a program take in a tree of `scalefs run`, as a part of what they take on tmpfs without it: each round is a process
//! here and one there, by turns, by processor time.
//!
//! Prints of each call nanoseconds here and there, and their ratio, as the median of rounds with the first and third quartile. The
//! last ones are calls that are passed on, and `exec`.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("calls"), Some(top)) => measured::make_calls(&top),
        _ => measured::compare(),
    }
}

#[cfg(target_os = "linux")]
mod measured {
    use std::ffi::CString;
    use std::fs;
    use std::hint::black_box;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::process::Command;

    use nix::fcntl::{AtFlags, OFlag, open, renameat};
    use nix::sys::stat::{Mode, fstat, fstatat};
    use nix::sys::uio::{pread, pwrite};
    use nix::time::{ClockId, clock_gettime};
    use nix::unistd::{UnlinkatFlags, getppid, read, unlinkat};

    use crate::support::Scratch;

    const ROUNDS: usize = 15;
    const PAGE: usize = 4096;
    const PAGES: usize = 64;
    const CALLS: u32 = 2000;
    const PROGRAMS: u32 = 40;

    /// What is measured, and how often in a round.
    const MEASURED: [(&str, u32); 12] = [
        ("stat", CALLS),
        ("fstat", CALLS),
        ("open+close", CALLS),
        ("create+unlink", CALLS),
        ("rename", CALLS),
        ("read 4 KiB", CALLS),
        ("pread 4 KiB", CALLS),
        ("pwrite 4 KiB", CALLS),
        ("getppid, passed on", CALLS),
        ("stat of tmpfs, passed on", CALLS),
        ("open+close of tmpfs, passed on", CALLS),
        ("fork, exec of true, wait", PROGRAMS),
    ];

    struct Paths {
        file: CString,
        new: CString,
        moved: CString,
        there: CString,
        outside: CString,
    }

    fn make(index: usize, paths: &Paths, file: &OwnedFd, count: u32) {
        let mut page = [0_u8; PAGE];
        let here = nix::fcntl::AT_FDCWD;
        let status = |path: &CString| fstatat(here, path.as_c_str(), AtFlags::empty()).expect("it is there");
        let opened = |path: &CString| open(path.as_c_str(), OFlag::O_RDONLY, Mode::empty()).expect("it is there");
        for round in 0..count {
            let offset = (round as usize % PAGES * PAGE) as i64;
            match index {
                0 => drop(black_box(status(&paths.file))),
                1 => drop(black_box(fstat(file))),
                2 => drop(opened(&paths.file)),
                3 => {
                    let flags = OFlag::O_CREAT | OFlag::O_WRONLY;
                    drop(open(paths.new.as_c_str(), flags, Mode::S_IRWXU).expect("there is room"));
                    unlinkat(here, paths.new.as_c_str(), UnlinkatFlags::NoRemoveDir).expect("it is there");
                }
                4 => {
                    let (from, to) = (&paths.moved, &paths.there);
                    let (from, to) = if round % 2 == 0 { (from, to) } else { (to, from) };
                    renameat(here, from.as_c_str(), here, to.as_c_str()).expect("it is there");
                }
                5 => {
                    if read(file, &mut page).expect("it is open") == 0 {
                        nix::unistd::lseek(file, 0, nix::unistd::Whence::SeekSet).expect("it is a file");
                    }
                }
                6 => assert_eq!(pread(file, &mut page, offset), Ok(PAGE)),
                7 => assert_eq!(pwrite(file, &page, offset), Ok(PAGE)),
                8 => drop(black_box(getppid())),
                9 => drop(black_box(status(&paths.outside))),
                10 => drop(opened(&paths.outside)),
                _ => assert!(Command::new("/bin/true").status().expect("there is one").success()),
            }
        }
    }

    /// Processor time of this process and the children that it has waited for, in nanoseconds.
    fn processor_time_ns() -> f64 {
        let own = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("there is such a clock");
        let children =
            nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).expect("the system says");
        let (user, system) = (children.user_time(), children.system_time());
        let of_children =
            (user.tv_sec() + system.tv_sec()) as f64 * 1e9 + (user.tv_usec() + system.tv_usec()) as f64 * 1e3;
        own.tv_sec() as f64 * 1e9 + own.tv_nsec() as f64 + of_children
    }

    /// One round in a directory: prints nanoseconds of each call.
    pub fn make_calls(top: &str) {
        let outside = std::env::var("OUTSIDE").expect("a file on tmpfs");
        fs::create_dir_all(format!("{top}/a/b")).expect("there is room");
        fs::write(format!("{top}/a/b/file"), vec![0; PAGES * PAGE]).expect("there is room");
        fs::write(format!("{top}/a/b/moved"), "").expect("there is room");
        let path = |name: &str| CString::new(format!("{top}/a/b/{name}")).expect("no zeros");
        let paths = Paths {
            file: path("file"),
            new: path("new"),
            moved: path("moved"),
            there: path("there"),
            outside: CString::new(outside).expect("no zeros"),
        };
        let file = open(paths.file.as_c_str(), OFlag::O_RDWR, Mode::empty()).expect("it is there");
        for (index, (_, count)) in MEASURED.iter().enumerate() {
            make(index, &paths, &file, (count / 20).max(2));
            let before = processor_time_ns();
            make(index, &paths, &file, *count);
            println!("{}", (processor_time_ns() - before) / f64::from(*count));
        }
        fs::remove_dir_all(format!("{top}/a")).expect("it is there");
    }

    fn quartiles(mut samples: Vec<f64>) -> [f64; 3] {
        samples.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| samples[(samples.len() - 1) * quarter / 4])
    }

    fn round(command: &mut Command, outside: &Path) -> Vec<f64> {
        let output = command.env("OUTSIDE", outside).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said.lines().map(|line| line.parse().expect("a number")).collect()
    }

    pub fn compare() {
        let program = std::env::current_exe().expect("it runs");
        let (hidden, tmpfs) = (Scratch::new(), Scratch::below(Path::new("/dev/shm")));
        let outside = tmpfs.path("outside");
        fs::write(&outside, "").expect("there is room");
        let rounds: Vec<[Vec<f64>; 2]> = (0..ROUNDS)
            .map(|_| {
                let mut ours = Command::new(env!("CARGO_BIN_EXE_scalefs"));
                ours.args(["run", "--size", "64M", "--at"])
                    .arg(&hidden.0)
                    .arg("--")
                    .arg(&program)
                    .arg("calls")
                    .arg(&hidden.0);
                [round(&mut ours, &outside), round(Command::new(&program).arg("calls").arg(&tmpfs.0), &outside)]
            })
            .collect();
        for (index, (title, _)) in MEASURED.iter().enumerate() {
            let column = |side: usize| quartiles(rounds.iter().map(|round| round[side][index]).collect());
            let [ours, theirs] =
                [column(0), column(1)].map(|[low, median, high]| format!("{median:.0} [{low:.0}, {high:.0}]"));
            let ratios = rounds.iter().map(|round| round[0][index] / round[1][index]).collect();
            let [low, median, high] = quartiles(ratios);
            println!("{title}   {ours}   {theirs}   {median:.3} [{low:.3}, {high:.3}]");
        }
    }
}
