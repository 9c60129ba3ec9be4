//! What a process and everything it started have used.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use procfs::process::{ClearRefs, Process, Stat};

use super::cpu::ticks;
use super::process::is_live;

/// A child that is reaped between the reading of its parent and its own would be counted nowhere: the scan is taken again
/// when a process vanished under it. Bounded, since on a busy host one always does.
const SCANS: usize = 3;

/// What a process and all its descendants have used.
///
/// Memory is the sum of each process's resident set, shared pages counted once per process; it is an upper bound for
/// servers of several processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeUsage {
    /// User plus system time, dead (reaped) children included.
    pub cpu: Duration,
    /// Sum of `VmRSS`.
    pub rss_bytes: u64,
    /// Sum of `VmHWM` since the last [`reset_peak`].
    pub peak_rss_bytes: u64,
    /// Live processes.
    pub processes: usize,
}

/// Sums a process tree. A zombie is dead, but its time counts until its parent has it.
///
/// # Errors
/// `NotFound` where the root is gone or a zombie.
pub fn tree_usage(root: i32) -> io::Result<TreeUsage> {
    let stats = scan();
    let pids = descendants(&stats, root);
    if !stats.get(&root).is_some_and(is_live) {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("process {root} is gone")));
    }
    let mut usage = TreeUsage { cpu: Duration::ZERO, rss_bytes: 0, peak_rss_bytes: 0, processes: 0 };
    for stat in pids.iter().filter_map(|pid| stats.get(pid)) {
        // Negative only by a kernel fault; a child's time reaches its parent when it is reaped, so none counts twice.
        let children = u64::try_from(stat.cutime + stat.cstime).unwrap_or(0);
        usage.cpu += ticks(stat.utime + stat.stime + children);
        if is_live(stat) {
            usage.processes += 1;
            let (rss, peak) = memory_bytes(stat.pid);
            usage.rss_bytes += rss;
            usage.peak_rss_bytes += peak;
        }
    }
    Ok(usage)
}

/// Resets the high-water mark of every process of the tree (`clear_refs`).
///
/// # Errors
/// Where the kernel refuses it for a process that still lives.
pub fn reset_peak(root: i32) -> io::Result<()> {
    for pid in tree(root) {
        let cleared = Process::new(pid).and_then(|process| process.clear_refs(ClearRefs::PeakRSS));
        if let Err(error) = cleared
            && Process::new(pid).is_ok_and(|process| process.is_alive())
        {
            return Err(io::Error::other(format!("cannot reset the peak memory of process {pid}: {error}")));
        }
    }
    Ok(())
}

/// Process ids of a tree, root first, zombies left out. Empty where the root is gone.
pub fn tree(root: i32) -> Vec<i32> {
    let stats = scan();
    descendants(&stats, root).into_iter().filter(|pid| stats.get(pid).is_some_and(is_live)).collect()
}

/// `VmRSS` and `VmHWM` in bytes; 0 for what vanished or has no memory of its own.
fn memory_bytes(pid: i32) -> (u64, u64) {
    let Ok(status) = Process::new(pid).and_then(|process| process.status()) else { return (0, 0) };
    let bytes = |kib: Option<u64>| kib.unwrap_or(0) * 1024;
    (bytes(status.vmrss), bytes(status.vmhwm))
}

/// The state of every process, by id.
fn scan() -> HashMap<i32, Stat> {
    for _ in 1..SCANS {
        let (stats, vanished) = scan_once();
        if !vanished {
            return stats;
        }
    }
    scan_once().0
}

fn scan_once() -> (HashMap<i32, Stat>, bool) {
    let mut stats = HashMap::new();
    let mut vanished = false;
    for process in procfs::process::all_processes().into_iter().flatten() {
        match process.and_then(|process| process.stat()) {
            Ok(stat) => drop(stats.insert(stat.pid, stat)),
            Err(_) => vanished = true,
        }
    }
    (stats, vanished)
}

/// Breadth first from the root. Each process once, whatever the table says about parents.
fn descendants(stats: &HashMap<i32, Stat>, root: i32) -> Vec<i32> {
    if !stats.contains_key(&root) {
        return Vec::new();
    }
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for stat in stats.values() {
        children.entry(stat.ppid).or_default().push(stat.pid);
    }
    let mut seen = HashSet::from([root]);
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        next += 1;
        for child in children.get(pid).into_iter().flatten() {
            if seen.insert(*child) {
                found.push(*child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use super::*;

    /// A process with its group, ended with the test.
    struct Group(Child);

    impl Group {
        fn of(program: &std::path::Path, args: &[&str]) -> Self {
            let mut command = Command::new(program);
            command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
            // A fresh copy is busy for as long as a child forked by another test holds it open for writing.
            Self(poll("the start of a process", || command.spawn().ok()))
        }

        fn shell(script: &str) -> Self {
            Self::of("/bin/sh".as_ref(), &["-c", script])
        }

        fn pid(&self) -> i32 {
            i32::try_from(self.0.id()).unwrap()
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let group = nix::unistd::Pid::from_raw(self.pid());
            let _ = nix::sys::signal::killpg(group, nix::sys::signal::SIGKILL);
            let _ = self.0.wait();
        }
    }

    fn poll<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < deadline, "{what} did not happen in time");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_is_read_right() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("a) R 1 (b c");
        let shell = ["/bin/dash", "/bin/bash", "/bin/sh"].into_iter().find(|path| std::path::Path::new(path).exists());
        std::fs::copy(shell.unwrap(), &program).unwrap();
        // A busy loop in a process of that name: its state, parent, time and memory must come from the right fields.
        let odd = Group::of(&program, &["-c", "while :; do :; done"]);
        let usage =
            poll("CPU time", || tree_usage(odd.pid()).ok().filter(|usage| usage.cpu > Duration::from_millis(50)));
        assert_eq!(usage.processes, 1);
        assert!(usage.rss_bytes > 100_000 && usage.peak_rss_bytes >= usage.rss_bytes, "{usage:?}");
        assert!(tree(i32::try_from(std::process::id()).unwrap()).contains(&odd.pid()), "its parent is this process");
    }

    #[test]
    fn a_tree_is_summed_and_dead_children_keep_their_time() {
        // Four children; one burns time and ends, three stay.
        let root = Group::shell(
            "sleep 60 & sleep 60 & sleep 60 & sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' & wait $!; sleep 60",
        );
        let reaped = poll("the end of the busy child", || {
            let stat = super::super::process::stat(root.pid())?;
            u64::try_from(stat.cutime).ok().filter(|time| *time > 0)
        });
        let usage = poll("the last child", || tree_usage(root.pid()).ok().filter(|usage| usage.processes == 5));
        assert!(usage.cpu >= ticks(reaped), "{usage:?} lost {reaped} ticks of a dead child");
        assert_eq!(tree(root.pid()).first(), Some(&root.pid()));
        assert_eq!(tree(root.pid()).len(), 5);
    }

    #[test]
    fn a_zombie_is_no_process_but_its_time_counts() {
        // The shell becomes a sleep that never reaps the child it inherits.
        let root = Group::shell("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' & exec sleep 60");
        let usage = poll("a zombie", || {
            let stats = scan();
            let zombie = descendants(&stats, root.pid()).iter().any(|pid| stats[pid].state == 'Z');
            zombie.then(|| tree_usage(root.pid()).unwrap())
        });
        assert_eq!(usage.processes, 1, "{usage:?}");
        assert_eq!(tree(root.pid()), [root.pid()]);
        assert!(usage.cpu > Duration::from_millis(50), "{usage:?}");
    }

    #[test]
    fn a_root_that_is_gone_is_not_found() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        poll("its end", || tree_usage(pid).err());
        assert_eq!(tree_usage(pid).unwrap_err().kind(), io::ErrorKind::NotFound, "as a zombie");
        child.wait().unwrap();
        assert_eq!(tree_usage(pid).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(tree(pid), Vec::<i32>::new());
    }

    #[test]
    fn the_peak_can_be_reset() {
        // dd holds its buffer only while it copies; the shell around it keeps the tree alive.
        let root = Group::shell("dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; exec sleep 60");
        poll("sleep", || (tree(root.pid()).len() == 1).then_some(()));
        reset_peak(root.pid()).unwrap();
        let usage = tree_usage(root.pid()).unwrap();
        assert!(usage.peak_rss_bytes < 32 << 20, "{usage:?}");
    }
}
