//! An instance outlives the cores that act in it.
use percpu::OwnerId;
use scalefs::{OwnedConfig, OwnedScaleFs};
use sync::Spin;

fn main() {
    let files = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let core = files.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = files.file_system();
    drop(files);
    fs.maintain(&core, &Spin);
}
