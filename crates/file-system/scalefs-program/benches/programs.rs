//! What programs take in a tree of `scalefs run`, as a part of what they take on tmpfs without it, by processor time; and as a part of
//! what they take in a mount (`scalefs mount`), by the clock, since another process does the work there. In each round a program runs
//! in each place, in another order than in the round before.
//!
//! Calls are made by a program of C, linked with a library that is loaded and in itself, after many programs, and after many threads.
//! Then come programs that people have. What is not installed, or cannot be mounted, is said as not tested. Prints rows: table/mod.rs.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "../tests/support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
mod table;

#[cfg(target_os = "linux")]
fn main() {
    measured::compare();
}

#[cfg(target_os = "linux")]
mod measured {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use nix::sys::resource::{UsageWho, getrusage};

    use crate::support::{Mounted, Scratch, can_mount, compiled, run_in_tree};
    use crate::table;

    /// How much is measured.
    struct Sizes {
        rounds: usize,
        rounds_of_programs: usize,
        /// Of these, the first ones are also run in a mount, where each call waits for another process.
        rounds_in_mount: usize,
        calls: u32,
        programs_in_calls: u32,
        /// Programs, and threads at a time, that have run in the tree before its calls are measured.
        programs_before: u32,
        threads_before: u32,
        files_of_make: u32,
        files: u32,
    }

    impl Sizes {
        fn asked_for() -> Sizes {
            let whole = Sizes {
                rounds: 15,
                rounds_of_programs: 7,
                rounds_in_mount: 3,
                calls: 2000,
                programs_in_calls: 40,
                programs_before: 1000,
                threads_before: 300,
                files_of_make: 8,
                files: 20_000,
            };
            let small = Sizes {
                rounds: 2,
                rounds_of_programs: 1,
                rounds_in_mount: 1,
                calls: 50,
                programs_in_calls: 3,
                programs_before: 10,
                threads_before: 20,
                files_of_make: 2,
                files: 100,
            };
            table::size(whole, small)
        }
    }

    /// What the program below measures, in this order; the first are of files.
    const MEASURED: [&str; 12] = [
        "stat",
        "fstat",
        "open+close",
        "create+unlink",
        "rename",
        "read 4 KiB",
        "pread 4 KiB",
        "pwrite 4 KiB",
        "getppid, passed on",
        "stat of tmpfs, passed on",
        "open+close of tmpfs, passed on",
        "fork, exec of true, wait",
    ];
    const OF_FILES: usize = 8;

    /// Makes calls below a directory, and says of each how many nanoseconds it took, of processors and by the clock. Before that as
    /// many threads as are asked for are in calls there at once.
    const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { PAGE = 4096, PAGES = 64, KINDS = 12 };
static char page[PAGE];
static const char *outside;
static int file;
static void must(int holds) {
    if (!holds) { perror("a call"); exit(1); }
}
static double by_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}
static double now(void) {
    struct timespec own;
    struct rusage children;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return own.tv_sec * 1e9 + own.tv_nsec + (children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1e9
        + (children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1e3;
}
static void opened(const char *path) {
    int number = open(path, O_RDONLY);
    must(number >= 0 && close(number) == 0);
}
static void make(int kind, int round) {
    struct stat status;
    switch (kind) {
    case 0: must(stat("a/b/file", &status) == 0); break;
    case 1: must(fstat(file, &status) == 0); break;
    case 2: opened("a/b/file"); break;
    case 3: {
        int number = open("a/b/new", O_CREAT | O_WRONLY, 0644);
        must(number >= 0 && close(number) == 0 && unlink("a/b/new") == 0);
        break;
    }
    case 4: must((round % 2 ? rename("a/b/there", "a/b/moved") : rename("a/b/moved", "a/b/there")) == 0); break;
    case 5: if (read(file, page, PAGE) == 0) lseek(file, 0, SEEK_SET); break;
    case 6: must(pread(file, page, PAGE, round % PAGES * PAGE) == PAGE); break;
    case 7: must(pwrite(file, page, PAGE, round % PAGES * PAGE) == PAGE); break;
    case 8: must(syscall(SYS_getppid) > 0); break;
    case 9: must(stat(outside, &status) == 0); break;
    case 10: opened(outside); break;
    default: {
        int child = fork(), ended;
        if (child == 0) { execl("/bin/true", "true", (char *)0); _exit(1); }
        must(waitpid(child, &ended, 0) == child && ended == 0);
    }
    }
}
static void *visit(void *barrier) {
    struct stat status;
    for (int round = 0; round < 20; round++) must(stat("a/b/file", &status) == 0);
    pthread_barrier_wait(barrier);
    for (int round = 0; round < 20; round++) must(stat("a/b/file", &status) == 0);
    return 0;
}
static void begin_threads(int count) {
    pthread_t threads[count + 1];
    pthread_barrier_t barrier;
    if (count == 0) return;
    pthread_barrier_init(&barrier, 0, count);
    for (int index = 0; index < count; index++) must(pthread_create(&threads[index], 0, visit, &barrier) == 0);
    for (int index = 0; index < count; index++) pthread_join(threads[index], 0);
}
int main(int count, char **words) {
    must(count == 6 && chdir(words[1]) == 0);
    outside = words[2];
    int all = atoi(words[3]), programs = atoi(words[4]);
    must(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0);
    file = open("a/b/file", O_CREAT | O_RDWR, 0644);
    must(file >= 0 && mknod("a/b/moved", S_IFREG | 0644, 0) == 0);
    for (int index = 0; index < PAGES; index++) must(pwrite(file, page, PAGE, index * PAGE) == PAGE);
    begin_threads(atoi(words[5]));
    for (int kind = 0; kind < KINDS; kind++) {
        /* An even number: what is renamed comes back. */
        int calls = kind == KINDS - 1 ? programs : all;
        for (int round = 0; round < calls / 40 * 2 + 2; round++) make(kind, round);
        double before = now(), began = by_clock();
        for (int round = 0; round < calls; round++) make(kind, round);
        double after = now(), ended = by_clock();
        printf("%f %f\n", (after - before) / calls, (ended - began) / calls);
    }
    must(unlink("a/b/file") == 0 && unlink("a/b/moved") == 0 && rmdir("a/b") == 0 && rmdir("a") == 0);
}
"#;

    /// Where programs run: a directory that a tree hides, one of tmpfs, and one in a mount, if there can be one.
    struct Places {
        hidden: Scratch,
        tmpfs: Scratch,
        mount: Option<Mounted>,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Place {
        Tree,
        Tmpfs,
        Mount,
    }

    impl Places {
        fn new() -> Places {
            let mount = can_mount().then(|| Mounted::new(&["--size", SIZE]));
            Places { hidden: Scratch::new(), tmpfs: Scratch::below(Path::new("/dev/shm")), mount }
        }

        /// Those of a round, of which the first ones have a mount, too.
        fn of_round(&self, round: usize, in_mount: usize) -> Vec<Place> {
            let mount = self.mount.as_ref().filter(|_| round < in_mount).map(|_| Place::Mount);
            [Place::Tree, Place::Tmpfs].into_iter().chain(mount).collect()
        }

        fn directory(&self, place: Place) -> PathBuf {
            match (place, &self.mount) {
                (Place::Mount, Some(mounted)) => mounted.point.clone(),
                (Place::Tmpfs, _) => self.tmpfs.0.clone(),
                _ => self.hidden.0.clone(),
            }
        }

        /// A program, there.
        fn command(&self, place: Place, program: &str) -> Command {
            if place == Place::Tree {
                return run_in_tree(&self.hidden.0, &["--size", SIZE], program);
            }
            let mut command = Command::new(program);
            command.current_dir(self.directory(place));
            command
        }
    }

    const SIZE: &str = "512M";

    /// Nanoseconds of processors and by the clock.
    type Taken = [f64; 2];

    /// Measures in all places by turns, so many rounds of which the first ones are also in a mount; what came out, of each place in
    /// the order of [`Places::of_round`].
    fn by_turns<T>(
        part: &str,
        (count, in_mount): (usize, usize),
        places: &Places,
        mut measure: impl FnMut(Place) -> T,
    ) -> Vec<Vec<T>> {
        table::rounds(part, count, |round| {
            let all = places.of_round(round, in_mount);
            let mut taken: Vec<(usize, T)> = (0..all.len())
                .map(|turn| (turn + round) % all.len())
                .map(|index| (index, measure(all[index])))
                .collect();
            taken.sort_by_key(|(index, _)| *index);
            taken.into_iter().map(|(_, one)| one).collect()
        })
    }

    /// Prints a row of the tree against tmpfs, and one against a mount.
    fn say(title: &str, rounds: &[Vec<Taken>]) {
        let against = |other: usize, unit: usize| {
            let both = rounds.iter().filter_map(|round| Some([round[0][unit], round.get(other)?[unit]]));
            both.collect::<Vec<[f64; 2]>>()
        };
        table::row(title, &against(1, 0));
        let mounted = against(2, 1);
        if !mounted.is_empty() {
            table::row(&format!("{title}, against a mount"), &mounted);
        }
    }

    fn numbers(command: &mut Command) -> Vec<Taken> {
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let number = |word: &str| word.parse().expect("a number");
        said.lines().filter_map(|line| line.split_once(' ')).map(|(one, other)| [number(one), number(other)]).collect()
    }

    /// Calls of a program, after others of it.
    fn compare_calls(kind: &str, program: &Path, sizes: &Sizes, (programs, threads): (u32, u32), shown: &[&str]) {
        let places = Places::new();
        let outside = places.tmpfs.path("outside");
        fs::write(&outside, "").expect("there is room");
        let script = format!("n=0; while [ $n -lt {programs} ]; do /bin/true; n=$((n + 1)); done; exec \"$0\" \"$@\"");
        let counts = [sizes.calls, sizes.programs_in_calls, threads].map(|count| count.to_string());
        let rounds = by_turns(&format!("calls{kind}"), (sizes.rounds, sizes.rounds), &places, |place| {
            let mut command = places.command(place, "sh");
            // Elsewhere no trace of them is left that could matter.
            command
                .args(["-c", if place == Place::Tree { &script } else { "exec \"$0\" \"$@\"" }])
                .arg(program)
                .arg(places.directory(place))
                .arg(&outside)
                .args(&counts);
            numbers(&mut command)
        });
        for (index, title) in MEASURED.iter().enumerate().filter(|(_, title)| shown.contains(title)) {
            let of_call: Vec<Vec<Taken>> =
                rounds.iter().map(|round| round.iter().map(|calls| calls[index]).collect()).collect();
            say(&format!("{title}{kind}"), &of_call);
        }
    }

    /// Processor time of all children that have ended, in nanoseconds.
    fn children_ns() -> f64 {
        let children = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system says");
        let (user, system) = (children.user_time(), children.system_time());
        (user.tv_sec() + system.tv_sec()) as f64 * 1e9 + (user.tv_usec() + system.tv_usec()) as f64 * 1e3
    }

    /// Programs that people have: a title, what is needed, and what they do in an empty directory, which they leave so.
    fn scripts(sizes: &Sizes) -> [(String, &'static [&'static str], String); 4] {
        let make = format!(
            "for n in $(seq {}); do printf '#include <stdlib.h>\\n#include <string.h>\\nint g%s(void) {{ return %s; }}\\n' $n $n > g$n.c; done
            echo 'int main(void) {{ return 0; }}' > main.c
            printf 'o = main.o $(patsubst %%.c,%%.o,$(wildcard g*.c))\\np: $(o)\\n\\tgcc -o $@ $(o)\\n' > Makefile; make -s p; rm -f *",
            sizes.files_of_make
        );
        // In ten directories, by few programs.
        let files = format!(
            "mkdir d; for n in 0 1 2 3 4 5 6 7 8 9; do mkdir d/$n; seq {} | split -l 1 -a 4 -d - d/$n/; done",
            sizes.files / 10
        );
        let of_files = |what: &str| format!("{files}; {what}; rm -rf d");
        let commit = "export HOME=$PWD; git init -q d; cd d; git add .; git -c user.name=A -c user.email=a@b.c commit -qm one; git status --short; cd ..";
        [
            ("make of a small program".to_owned(), &["gcc", "make"], make),
            (format!("tar of {} files", sizes.files), &["tar"], of_files("tar cf t d; tar xf t -C d; rm t")),
            (format!("git of {} files", sizes.files), &["git"], of_files(commit)),
            (
                format!("rsync of {} files", sizes.files),
                &["rsync"],
                of_files("rsync -a d/ e/; rsync -a d/ e/; rm -rf e"),
            ),
        ]
    }

    fn has(program: &str) -> bool {
        let found = Command::new("sh").args(["-c", &format!("command -v {program} > /dev/null")]).status();
        let is_there = found.is_ok_and(|status| status.success());
        if !is_there {
            eprintln!("not tested: {program} is not installed");
        }
        is_there
    }

    fn compare_programs(title: &str, script: &str, sizes: &Sizes) {
        let places = Places::new();
        // In the first round all is read for the first time.
        let mut rounds = by_turns(title, (sizes.rounds_of_programs + 1, sizes.rounds_in_mount + 1), &places, |place| {
            let (before, began) = (children_ns(), std::time::Instant::now());
            let status = places.command(place, "sh").args(["-euc", script]).status();
            assert!(status.is_ok_and(|status| status.success()), "{title}");
            [children_ns() - before, began.elapsed().as_nanos() as f64]
        });
        rounds.remove(0);
        say(title, &rounds);
    }

    pub fn compare() {
        let (scratch, sizes) = (Scratch::new(), Sizes::asked_for());
        let many_programs = format!(", after {} programs", sizes.programs_before);
        let many_threads = format!(", after {} threads", sizes.threads_before);
        let measure_calls = |kind: &str, options: &[&str], before: (u32, u32), count: usize| {
            if table::is_wanted(&format!("calls{kind}"))
                && let Some(program) = compiled(&scratch.0, PROGRAM, &[options, &["-O2", "-pthread"]].concat())
            {
                compare_calls(kind, &program, &sizes, before, &MEASURED[..count]);
            }
        };
        measure_calls("", &[], (0, 0), MEASURED.len());
        measure_calls(&many_programs, &[], (sizes.programs_before, 0), OF_FILES);
        measure_calls(&many_threads, &[], (0, sizes.threads_before), OF_FILES);
        measure_calls(", linked statically", &["-static"], (0, 0), OF_FILES);
        for (title, needs, script) in scripts(&sizes) {
            if table::is_wanted(&title) && needs.iter().all(|program| has(program)) {
                compare_programs(&title, &script, &sizes);
            }
        }
    }
}
