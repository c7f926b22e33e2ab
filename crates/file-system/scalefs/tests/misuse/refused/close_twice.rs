//! What is open is closed once.
use percpu::OwnerId;
use scalefs::{Context, Credentials, OpenFlags, OwnedConfig, OwnedScaleFs, Start, names};
use sync::Spin;

fn main() {
    let files = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let core = files.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = files.file_system();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let call = fs.begin(&core, &context, &Spin);
    let opened = names::open(&call, Start::WorkingDirectory, b"a", OpenFlags::CREATE, 0o600).unwrap();
    names::close(&call, opened.handle);
    names::close(&call, opened.handle);
}
