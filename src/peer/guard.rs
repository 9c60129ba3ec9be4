//! Ends a server when this process dies without having ended it: by SIGKILL, or by a second Ctrl-C.

use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// `read` returns when its pipe ends, and only this process holds the other end.
const SCRIPT: &str = r#"read -r line; kill -s KILL -- "-$1""#;

/// A shell that outlives this process by a moment. It sees to the process group only; what has left the group is swept
/// by the next run.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
    _line: PipeWriter,
}

impl Guard {
    /// The group must be alive or not yet reaped for as long as the guard lives: its number must stay its own.
    pub(super) fn over(group: i32) -> io::Result<Self> {
        let (reader, line) = io::pipe()?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "headroom-guard", &group.to_string()]);
        shell.env_clear().stdin(reader).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Self { shell: shell.spawn()?, _line: line })
    }

    /// Called before the group's root is reaped. Does nothing the second time.
    pub(super) fn release(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.release();
    }
}
