//! Whom the kernel charges for the time of interrupts.

use std::sync::OnceLock;

/// Measures interrupts by themselves and takes them out of the time of the process they interrupted.
const APART: &str = "CONFIG_IRQ_TIME_ACCOUNTING";

/// Whether the time of interrupts is charged to no process. Without `CONFIG_IRQ_TIME_ACCOUNTING` a tick within an interrupt
/// is charged to the process it came in (`account_system_index_time` in the kernel's `cputime.c`). Where the kernel does
/// not say how it was built, they are taken to be nobody's: then nobody is accused of them.
pub fn interrupts_apart() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    // The names of options that are set; those that are not are left out or commented away.
    *KNOWN.get_or_init(|| procfs::kernel_config().map_or(true, |options| options.contains_key(APART)))
}
