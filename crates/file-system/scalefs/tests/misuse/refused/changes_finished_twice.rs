//! Prepared changes are decided once.
use percpu::OwnerId;
use scalefs::{Context, Credentials, Decision, Moment, NameChanges, OwnedConfig, OwnedScaleFs};
use sync::Spin;

fn main() {
    let files = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let core = files.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = files.file_system();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let call = fs.begin(&core, &context, &Spin);
    let prepared = call.prepare(&[], Moment { now_ns: 0, touched: &[] }, &mut []).unwrap();
    call.finish(prepared, Decision::Commit).unwrap();
    call.finish(prepared, Decision::Abort).unwrap();
}
