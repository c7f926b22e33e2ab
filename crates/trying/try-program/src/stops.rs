//! What a test does to the program: end it as a power cut would, let others come in between, plant a fault. Of a release nothing.

/// How many places came so far.
#[cfg(debug_assertions)]
static PASSED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// In a test's program: the place with the number in `COMMUTANT_TRY_END_AT` is the last.
pub(crate) fn may_end_here() {
    #[cfg(debug_assertions)]
    {
        let passed = PASSED.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        let wanted = std::env::var("COMMUTANT_TRY_END_AT").ok().and_then(|number| number.parse().ok());
        if wanted == Some(passed) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}

/// In a test's program: whether the fault of this name is planted.
pub(crate) fn planted(name: &str) -> bool {
    #[cfg(debug_assertions)]
    return std::env::var_os("COMMUTANT_TRY_PLANTED").is_some_and(|planted| planted == *name);
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        false
    }
}

/// In a test's program: lets another process change something at this place, by a command in `COMMUTANT_TRY_RUN_AT_<place>`.
pub(crate) fn others_may_come(place: &str) {
    #[cfg(debug_assertions)]
    if let Some(command) = std::env::var_os(format!("COMMUTANT_TRY_RUN_AT_{place}")) {
        let _ = std::process::Command::new("/bin/sh").arg("-c").arg(command).status();
    }
    #[cfg(not(debug_assertions))]
    let _ = place;
}
