//! A look at a pool.

use pool::file::{Member, Status, VERSION};

use crate::json;
use crate::options::InspectOptions;

/// `pool inspect`.
pub(crate) fn inspect(options: &InspectOptions) -> Result<(), String> {
    let status = pool::file::inspect(&options.file).map_err(|error| error.to_string())?;
    let file = options.file.to_string_lossy();
    crate::say(&if options.is_json { as_json(&file, &status) } else { as_text(&file, &status) })
}

fn as_json(file: &str, status: &Status) -> String {
    let member = |member: &Member| {
        let Member { domain, process, is_joined, incarnation } = member;
        format!(
            "{{\"domain\": {domain}, \"process\": {process}, \"joined\": {is_joined}, \"incarnation\": {incarnation}}}"
        )
    };
    let members: Vec<String> = status.members.iter().map(member).collect();
    format!(
        "{{\"file\": {}, \"version\": {VERSION}, \"size_bytes\": {}, \"first_free\": {}, \"domains\": {}, \"owner\": {}, \
         \"mode\": \"{:04o}\", \"write_back\": {}, \"invalidate\": {}, \"members\": [{}]}}",
        json::text(file),
        status.size_bytes,
        status.first_free,
        status.domain_count,
        status.owner,
        status.mode,
        json::text(status.instructions.0),
        json::text(status.instructions.1),
        members.join(", ")
    )
}

fn as_text(file: &str, status: &Status) -> String {
    let joined = status.members.iter().filter(|member| member.is_joined).count();
    let mut lines = vec![format!(
        "{}: a pool of version {VERSION}, {} bytes, of which {} are its own; of user {}, mode {:04o}; here lines are written back by \
         {} and invalidated by {}; {joined} of {} domains have joined",
        file.escape_debug(),
        status.size_bytes,
        status.first_free,
        status.owner,
        status.mode,
        status.instructions.0,
        status.instructions.1,
        status.domain_count
    )];
    let member = |member: &Member| {
        let Member { domain, process, is_joined, incarnation } = member;
        let state = if *is_joined { "joined" } else { "has left" };
        format!("domain {domain}: {state}: process {process}, time {incarnation}")
    };
    lines.extend(status.members.iter().map(member));
    lines.join("\n")
}
