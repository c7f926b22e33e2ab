//! What `--help` says.

pub(crate) const HELP: &str = "\
commutant try: run a command, look at what it would change, and commit all of it or nothing

  commutant try [OPTIONS] CMD [ARG …]   run CMD; its changes go into a layer of their own
  commutant try summary DIR             list the changes in a workspace
  commutant try commit DIR              make them, if all that the command has seen is still so
  commutant try explore [DIR]           work in a shell over the tree, or over a workspace
  commutant try recover DIR             end a commit that was cut short: wholly, or not at all

  -n            keep the changes, and print the workspace's directory
  -y            commit without asking, if CMD succeeds
  -N DIR        use DIR as workspace: an empty directory, or one of before (implies -n)
  -x            without the network
  -i PATH       hide PATH from CMD
  -I PATTERN    take only paths that match a regular expression; several add up
  -E PATTERN    leave out paths that match; several add up (commit DIR is refused if -I or -E leave out a change)
  -L D1:D2:…    run over the changes of other workspaces, the first one on top (implies -n)
  -t FILE       write which paths CMD has read, and which it has written
  --retry N     with -y: run CMD again when its commit is refused, N times at most
  --merge       commit also where others have changed other names of a directory, or other bytes of a file (with CMD and commit)
  --live        let all changes become visible at one moment (root; all below one directory)
  --json        one JSON document on standard output; CMD's output goes to standard error
  -v, -h        the version; this help

One word CMD is a line for the shell; several are a program and its arguments.
Exit codes: CMD's own; 0 done, 1 refused (or no changes, of summary), 2 bad use, 3 it could not be done, 130 interrupted.";
