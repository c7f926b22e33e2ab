//! Running a command in a workspace: the process outside, which answers the kernel's requests.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::attributes::Attributes;
use crate::control::{self, Listener, Said};
use crate::failure::Failure;
use crate::machine;
use crate::ownership::Ownership;
use crate::plan::{ENTER, Network, Output, Plan};
use crate::record::Recorder;
use crate::shared::locked;
use crate::signals::{self, Phase};
use crate::tree::Tree;
use crate::view::View;
use crate::workspace::Workspace;
use fuser::{Config, Session, SessionACL};

/// How long the process inside may take to call.
const CALL_TIMEOUT_MS: u16 = 200;
const CALLS: usize = 100;

/// What is run.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) command: Vec<OsString>,
    pub(crate) network: Network,
    pub(crate) output: Output,
    pub(crate) between: Vec<PathBuf>,
    /// Whether the bytes that are read are kept, so that changes of others can be merged with the command's.
    pub(crate) keeps_read: bool,
}

/// Runs a command to its end; returns its exit code, 128 and the signal's number if one has ended it.
pub(crate) fn run(workspace: &mut Workspace, running: &Running) -> Result<u8, Failure> {
    let right = machine::right();
    machine::check(right).map_err(Failure::Run)?;
    let current = std::env::current_dir().map_err(Failure::doing("the current directory"))?;
    workspace.write_about()?;
    like_root(workspace)?;
    let record = workspace.next_record()?;
    let kept = if running.keeps_read { Some(workspace.place_for_read(&record)?) } else { None };
    let recorder = Recorder::create(&record, kept.as_deref()).map_err(Failure::doing(record.display()))?;
    let recorder = Arc::new(Mutex::new(Some(recorder)));
    let tree = Tree::open("/".as_ref(), workspace.unseen()).map_err(Failure::doing("/"))?;
    let view = View::new(tree, Ownership::current(right), recorder.clone()).map_err(Failure::calling("/"))?;

    let listener = Listener::new().map_err(Failure::doing("listening for the run"))?;
    let plan = Plan {
        control: listener.name.clone(),
        right,
        network: running.network,
        output: running.output,
        workspace: workspace.path.clone(),
        current,
        between: running.between.clone(),
        command: running.command.clone(),
    };
    let mut child =
        Command::new("/proc/self/exe").args(plan.arguments(ENTER)).spawn().map_err(Failure::doing("starting"))?;
    signals::go_to(Phase::Running(child.id()));
    let answering = answer(&listener, &mut child, view);
    let status = match &answering {
        Ok(_) => child.wait(),
        Err(_) => child.kill().and_then(|()| child.wait()),
    };
    let status = status.map_err(Failure::doing("waiting for the run"))?;
    signals::go_to(Phase::Between);
    // All processes of the run have ended, and its mounts went with them.
    let answering = match answering {
        Ok(answering) => answering,
        // No command began, so that nothing was looked at: an earlier run's changes stay what they were.
        Err(failure) => {
            drop(locked(&recorder).take());
            for path in kept.iter().chain([&record]) {
                std::fs::remove_file(path).map_err(Failure::doing(path.display()))?;
            }
            return Err(failure);
        }
    };
    answering.join().map_err(|_| Failure::Run("answering the kernel ended in a panic".to_owned()))?;
    if let Some(recorder) = locked(&recorder).take() {
        recorder.end().map_err(Failure::doing(record.display()))?;
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// The root of the layer looks as that of the tree.
fn like_root(workspace: &Workspace) -> Result<(), Failure> {
    let upper = workspace.path.join("upper");
    let failed = || Failure::doing(upper.display());
    let root = std::fs::metadata("/").map_err(Failure::doing("/"))?;
    let root = Ownership::current(workspace.right).shown(&Attributes::of(&root));
    std::os::unix::fs::chown(&upper, Some(root.user), Some(root.group)).map_err(failed())?;
    std::fs::set_permissions(&upper, Permissions::from_mode(root.mode)).map_err(failed())
}

/// Hears the run until its command has started; answers the kernel in threads of its own.
fn answer(listener: &Listener, child: &mut Child, view: View) -> Result<JoinHandle<()>, Failure> {
    let failed = || Failure::doing("hearing the run");
    let (mut view, mut answering) = (Some(view), None);
    for _ in 0..CALLS {
        let Some(mut stream) = listener.accept(CALL_TIMEOUT_MS).map_err(failed())? else {
            if let Some(status) = child.try_wait().map_err(failed())? {
                return Err(Failure::Run(format!("the run ended before its command began: {status}")));
            }
            continue;
        };
        loop {
            match control::hear(&mut stream).map_err(failed())? {
                Said::Mounted { device, processes } => {
                    let view = view.take().ok_or_else(|| Failure::Run("the run has mounted twice".to_owned()))?;
                    answering = Some(answer_kernel(view.for_run(processes), device)?);
                    control::say_go(&mut stream).map_err(failed())?;
                }
                Said::Started => return answering.ok_or_else(|| Failure::Run("the run has no view".to_owned())),
                Said::Failed(line) => return Err(Failure::Run(line)),
                // The process that makes the namespaces has nothing to say unless it fails; the next one calls itself.
                Said::Nothing => break,
            }
        }
        if let Some(answering) = answering.take() {
            // A command that was not found: the run has said so itself, and ends with its code.
            return Ok(answering);
        }
    }
    Err(Failure::Run("the run did not call".to_owned()))
}

fn answer_kernel(view: View, device: std::os::fd::OwnedFd) -> Result<JoinHandle<()>, Failure> {
    let mut config = Config::default();
    config.n_threads = Some(thread::available_parallelism().map_or(1, usize::from));
    config.clone_fd = true;
    let session = Session::from_fd(view, device, SessionACL::All, config);
    let session = session.map_err(Failure::doing("greeting the kernel"))?;
    let answer = move || {
        if let Err(error) = session.run() {
            eprintln!("commutant try: answering the kernel: {}", crate::failure::reason(&error));
        }
    };
    thread::Builder::new().name("view".to_owned()).spawn(answer).map_err(Failure::doing("answering the kernel"))
}
