//! Limits that a cgroup sets: invisible to the affinity mask, decisive for what a server may use.

use std::fs;
use std::path::{Path, PathBuf};

/// The tightest limits on the way from this process's cgroup to the root.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// CPUs' worth of time, in thousandths.
    pub(super) quota_millicpus: Option<u64>,
    /// Bytes.
    pub(super) memory_bytes: Option<u64>,
    /// `0-3`, as the kernel prints it.
    pub(super) cpuset: Option<String>,
}

/// Reads version 2, then version 1 of the interface, under `/sys/fs/cgroup`.
pub(super) fn limits() -> Limits {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limits_in(Path::new("/sys/fs/cgroup"), &membership)
}

fn limits_in(mount: &Path, membership: &str) -> Limits {
    let mut limits = Limits::default();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let base = if controllers.is_empty() { mount.to_owned() } else { mount.join(controllers) };
        for folder in ancestors(&base, path) {
            tighten(&mut limits.quota_millicpus, quota_v2(&folder).or_else(|| quota_v1(&folder)));
            let memory = read(&folder, "memory.max").or_else(|| read(&folder, "memory.limit_in_bytes"));
            tighten(&mut limits.memory_bytes, memory.and_then(|text| memory_limit(&text)));
            if limits.cpuset.is_none() {
                limits.cpuset =
                    read(&folder, "cpuset.cpus.effective").or_else(|| read(&folder, "cpuset.effective_cpus"));
            }
        }
    }
    limits
}

/// The folder of the group, then its parents up to the mount. Inside a container the path may not exist: the mount does.
fn ancestors(base: &Path, path: &str) -> Vec<PathBuf> {
    let own = base.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|folder| folder.starts_with(base)).map(Path::to_owned).collect()
}

fn read(folder: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(name)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// `max 100000` or `150000 100000`: microseconds of CPU time in each period.
fn quota_v2(folder: &Path) -> Option<u64> {
    let text = read(folder, "cpu.max")?;
    let (quota, period) = text.split_once(' ')?;
    millicpus(quota, period)
}

fn quota_v1(folder: &Path) -> Option<u64> {
    millicpus(&read(folder, "cpu.cfs_quota_us")?, &read(folder, "cpu.cfs_period_us")?)
}

/// `None` for `max` and `-1`, which mean no limit.
fn millicpus(quota: &str, period: &str) -> Option<u64> {
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
    (quota * 1000).checked_div(period)
}

/// Version 1 says "no limit" with a number near 2^63.
fn memory_limit(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|bytes| *bytes < 1 << 62)
}

fn tighten(limit: &mut Option<u64>, other: Option<u64>) {
    *limit = match (*limit, other) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let mount = tempfile::tempdir().unwrap();
        let inner = mount.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("cpu.max"), "max 100000\n").unwrap();
        fs::write(inner.join("cpuset.cpus.effective"), "0-1\n").unwrap();
        fs::write(inner.join("memory.max"), "2147483648\n").unwrap();
        fs::write(mount.path().join("outer/cpu.max"), "150000 100000\n").unwrap();
        fs::write(mount.path().join("outer/memory.max"), "1073741824\n").unwrap();
        let expected =
            Limits { quota_millicpus: Some(1500), memory_bytes: Some(1 << 30), cpuset: Some("0-1".to_owned()) };
        assert_eq!(limits_in(mount.path(), "0::/outer/inner\n"), expected);
    }

    #[test]
    fn version_1_is_read_too() {
        let mount = tempfile::tempdir().unwrap();
        let group = mount.path().join("cpu,cpuacct/box");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.cfs_quota_us"), "50000\n").unwrap();
        fs::write(group.join("cpu.cfs_period_us"), "100000\n").unwrap();
        fs::create_dir_all(mount.path().join("memory/box")).unwrap();
        fs::write(mount.path().join("memory/box/memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        let limits = limits_in(mount.path(), "4:cpu,cpuacct:/box\n3:memory:/box\n");
        assert_eq!(limits, Limits { quota_millicpus: Some(500), ..Limits::default() });
    }

    #[test]
    fn without_cgroups_there_are_no_limits() {
        let mount = tempfile::tempdir().unwrap();
        assert_eq!(limits_in(mount.path(), ""), Limits::default());
        assert_eq!(limits_in(mount.path(), "0::/gone\n"), Limits::default());
    }
}
