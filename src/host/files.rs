//! How many files a process may open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, as Node and Bun do when they start: a server with the usual
/// 1,024 would stop accepting at a thousand connections. Where that is refused the limit stays.
pub fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
