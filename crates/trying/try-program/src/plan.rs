//! What the processes inside a run are given: the same for both, as arguments of this program.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::machine::Right;

/// The verb of the process that makes the namespaces, and of the first one in them.
pub(crate) const ENTER: &str = "inside-enter";
pub(crate) const FIRST: &str = "inside-first";

/// Whether the command reaches the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Shared,
    None,
}

/// Where the command's standard output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    AsIs,
    /// To standard error: standard output is for a document.
    ToErrors,
}

/// How a command is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Where the process outside listens.
    pub(crate) control: String,
    pub(crate) right: Right,
    pub(crate) network: Network,
    pub(crate) output: Output,
    pub(crate) workspace: PathBuf,
    pub(crate) current: PathBuf,
    /// Layers of other workspaces between this one's and the tree, the topmost first.
    pub(crate) between: Vec<PathBuf>,
    pub(crate) command: Vec<OsString>,
}

impl Plan {
    pub(crate) fn arguments(&self, verb: &str) -> Vec<OsString> {
        let network = if self.network == Network::None { "none" } else { "shared" };
        let output = if self.output == Output::ToErrors { "errors" } else { "as-is" };
        let mut arguments: Vec<OsString> =
            vec![verb.into(), self.control.clone().into(), self.right.name().into(), network.into(), output.into()];
        arguments.extend([self.workspace.clone().into(), self.current.clone().into()]);
        arguments.push(self.between.len().to_string().into());
        arguments.extend(self.between.iter().map(|layer| layer.clone().into()));
        arguments.extend(self.command.iter().cloned());
        arguments
    }

    /// From the arguments after the verb.
    pub(crate) fn of_arguments(arguments: &[OsString]) -> Option<Plan> {
        let [control, right, network, output, workspace, current, count, rest @ ..] = arguments else { return None };
        let count: usize = count.to_str()?.parse().ok()?;
        let (between, command) = rest.split_at_checked(count)?;
        Some(Plan {
            control: control.to_str()?.to_owned(),
            right: Right::of_name(right.to_str()?)?,
            network: if network == "none" { Network::None } else { Network::Shared },
            output: if output == "errors" { Output::ToErrors } else { Output::AsIs },
            workspace: workspace.into(),
            current: current.into(),
            between: between.iter().map(PathBuf::from).collect(),
            command: command.to_vec(),
        })
    }
}
