//! A process that has exited makes no calls.
use percpu::OwnerId;
use scalefs::{Credentials, OwnedConfig, OwnedScaleFs, Process};
use sync::Spin;

fn main() {
    let files = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let core = files.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = files.file_system();
    let process = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    process.exit(fs, &core, &Spin);
    fs.enter(&core, &process, &Spin);
}
