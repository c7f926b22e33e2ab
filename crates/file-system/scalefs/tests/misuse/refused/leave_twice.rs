//! A context leaves once.
use percpu::OwnerId;
use scalefs::{Context, Credentials, OwnedConfig, OwnedScaleFs};

fn main() {
    let files = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let core = files.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = files.file_system();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    context.leave(fs, &core);
    context.leave(fs, &core);
}
