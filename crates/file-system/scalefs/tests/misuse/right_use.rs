//! What the refused cases do, in the right order.
use percpu::OwnerId;
use scalefs::{Context, Credentials, Kind, ObjectOperations, OpenFlags, OwnedConfig, OwnedScaleFs, Process, Start, names};
use sync::Spin;

fn main() {
    let files = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let core = files.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = files.file_system();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let process = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    let call = fs.begin(&core, &context, &Spin);
    let opened = names::open(&call, Start::WorkingDirectory, b"a", OpenFlags::CREATE, 0o600).unwrap();
    let node = call.held(&opened.handle);
    assert_eq!(call.kind(node), Kind::Regular);
    names::close(&call, opened.handle);
    drop(call);
    context.leave(fs, &core);
    drop(fs.enter(&core, &process, &Spin));
    process.exit(fs, &core, &Spin);
    drop(core);
    drop(files);
}
