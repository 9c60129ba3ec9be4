//! CPU, kernel and cgroup facts; `/proc` sampling.
//!
//! Everything here only looks. What cannot be read is `None` in [`Facts`], never a guess; a process that vanishes
//! while it is looked at is no error.

mod affinity;
mod cgroup;
mod cpu;
mod facts;
mod files;
mod interrupts;
mod process;
mod tree;

pub use affinity::{allowed_cpus, keep_to, parse_cpus};
pub use cpu::{CpuShares, HostCpu, own_cpu};
pub use facts::Facts;
pub use files::raise_file_limit;
pub use interrupts::interrupts_apart;
pub use process::ProcessId;
pub use tree::{TreeUsage, reset_peak, tree, tree_usage};
