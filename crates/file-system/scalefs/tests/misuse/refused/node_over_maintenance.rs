//! A node is of one call, and the core maintains between calls.
use percpu::OwnerId;
use scalefs::{Context, Credentials, ObjectOperations, OwnedConfig, OwnedScaleFs};
use sync::Spin;

fn main() {
    let files = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let core = files.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = files.file_system();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let call = fs.begin(&core, &context, &Spin);
    let node = call.root();
    drop(call);
    fs.maintain(&core, &Spin);
    println!("{:?}", node);
}
