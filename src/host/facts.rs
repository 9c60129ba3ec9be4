//! What this host is, as stored in every record.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use super::cgroup;

/// What this host is. What could not be read is `None`, never a guess.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// `AMD EPYC 7763 64-Core Processor`.
    pub cpu_model: Option<String>,
    /// `x86_64`, `aarch64`.
    pub architecture: Option<String>,
    /// CPUs that are online, hardware threads counted.
    pub logical_cpus: Option<u32>,
    /// Physical cores that are online.
    pub cores: Option<u32>,
    /// Whether two hardware threads share a core.
    pub smt: Option<bool>,
    /// CPUs this process may run on, as the kernel prints the mask: `0-3,8`.
    pub allowed_cpus: Option<String>,
    /// How many those are.
    pub allowed_cpu_count: Option<u32>,
    /// Frequency governor of the first CPU; virtual machines have none.
    pub governor: Option<String>,
    /// `6.8.0-31-generic`.
    pub kernel: Option<String>,
    /// `Debian GNU/Linux 12 (bookworm)`.
    pub os: Option<String>,
    /// What hints at a virtual machine or container: `hypervisor flag; QEMU Standard PC`. `None` where nothing does.
    pub virtualisation: Option<String>,
    /// CPU time the cgroup allows, in thousandths of a CPU. `None` where it sets no limit.
    pub cgroup_quota_millicpus: Option<u64>,
    /// CPUs the cgroup allows.
    pub cgroup_cpuset: Option<String>,
    /// Memory the cgroup allows. `None` where it sets no limit.
    pub cgroup_memory_bytes: Option<u64>,
    /// Physical memory.
    pub memory_bytes: Option<u64>,
    /// CPU vulnerabilities by state: `mitigated: meltdown, spectre_v2; vulnerable: mds`.
    pub mitigations: Option<String>,
    /// Soft limit on open files of this process.
    pub file_limit: Option<u64>,
    /// What the soft limit may be raised to.
    pub file_limit_hard: Option<u64>,
    /// Longest queue of connections that wait to be accepted.
    pub somaxconn: Option<u32>,
    /// First and last port for outgoing connections.
    pub local_ports: Option<(u16, u16)>,
}

impl Facts {
    /// Reads `/proc` and `/sys`; what cannot be read is `None`, never a guess.
    pub fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let online = line("/sys/devices/system/cpu/online").and_then(|list| cpu_list(&list));
        let allowed_cpus = field("/proc/self/status", "Cpus_allowed_list:");
        let limits = cgroup::limits();
        let files = getrlimit(Resource::RLIMIT_NOFILE).ok();
        Self {
            cpu_model: cpu_model(&cpuinfo),
            architecture: Some(std::env::consts::ARCH.to_owned()),
            logical_cpus: online.as_ref().map(|cpus| count(cpus)),
            cores: online.as_deref().and_then(cores),
            smt: line("/sys/devices/system/cpu/smt/active").map(|active| active == "1"),
            allowed_cpu_count: allowed_cpus.as_deref().and_then(cpu_list).as_ref().map(|cpus| count(cpus)),
            allowed_cpus,
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            kernel: line("/proc/sys/kernel/osrelease"),
            os: field("/etc/os-release", "PRETTY_NAME=").map(|name| name.trim_matches('"').to_owned()),
            virtualisation: virtualisation(&cpuinfo),
            cgroup_quota_millicpus: limits.quota_millicpus,
            cgroup_cpuset: limits.cpuset,
            cgroup_memory_bytes: limits.memory_bytes,
            memory_bytes: field("/proc/meminfo", "MemTotal:").and_then(|text| kib(&text)),
            mitigations: mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities")),
            file_limit: files.map(|(soft, _)| soft),
            file_limit_hard: files.map(|(_, hard)| hard),
            somaxconn: line("/proc/sys/net/core/somaxconn").and_then(|text| text.parse().ok()),
            local_ports: line("/proc/sys/net/ipv4/ip_local_port_range").and_then(|text| ports(&text)),
        }
    }
}

/// The trimmed content of a file of one line; `None` where it is empty.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What follows `name` on the first line that starts with it.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

fn count(cpus: &[u32]) -> u32 {
    u32::try_from(cpus.len()).expect("fewer CPUs than 2^32")
}

/// `0-2,8` → 0, 1, 2, 8.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?);
    }
    Some(cpus)
}

/// Distinct pairs of package and core among these CPUs.
fn cores(cpus: &[u32]) -> Option<u32> {
    let mut found = BTreeSet::new();
    for cpu in cpus {
        let topology = Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}/topology"));
        found.insert((line(topology.join("physical_package_id"))?, line(topology.join("core_id"))?));
    }
    u32::try_from(found.len()).ok()
}

/// The value of a `name : value` line of `/proc/cpuinfo`.
fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// ARM kernels print numbers instead of a name.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    if let Some(name) = cpuinfo_field(cpuinfo, "model name") {
        return Some(name.to_owned());
    }
    let (implementer, part) = (cpuinfo_field(cpuinfo, "CPU implementer")?, cpuinfo_field(cpuinfo, "CPU part")?);
    Some(format!("implementer {implementer} part {part}"))
}

fn virtualisation(cpuinfo: &str) -> Option<String> {
    let mut hints = Vec::new();
    if cpuinfo_field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
        hints.push("hypervisor flag".to_owned());
    }
    let product: Vec<String> =
        ["sys_vendor", "product_name"].iter().filter_map(|name| line(format!("/sys/class/dmi/id/{name}"))).collect();
    // Bare metal has a vendor too: it hints at something only beside the flag.
    if !hints.is_empty() && !product.is_empty() {
        hints.push(product.join(" "));
    }
    hints.extend(line("/sys/hypervisor/type"));
    if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        hints.push("container".to_owned());
    }
    (!hints.is_empty()).then(|| hints.join("; "))
}

/// Each file of the folder names a vulnerability and holds `Not affected`, `Vulnerable…` or `Mitigation: …`.
fn mitigations(folder: &Path) -> Option<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let state_of = |name: &String| line(folder.join(name)).unwrap_or_default();
    let with = |word: &str| {
        names.iter().filter(|name| state_of(name).starts_with(word)).cloned().collect::<Vec<_>>().join(", ")
    };
    let parts: Vec<String> = [("mitigated", with("Mitigation")), ("vulnerable", with("Vulnerable"))]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(state, names)| format!("{state}: {names}"))
        .collect();
    Some(if parts.is_empty() { "none needed".to_owned() } else { parts.join("; ") })
}

/// `24576 kB` → bytes.
fn kib(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn ports(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once(char::is_whitespace)?;
    Some((first.parse().ok()?, last.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_read_and_survives_json() {
        let facts = Facts::read();
        assert!(facts.kernel.is_some() && facts.memory_bytes.is_some_and(|bytes| bytes > 1 << 20), "{facts:?}");
        assert!(facts.allowed_cpu_count <= facts.logical_cpus, "{facts:?}");
        assert!(facts.file_limit <= facts.file_limit_hard, "{facts:?}");
        let json = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&json).unwrap(), facts);
    }

    #[test]
    fn a_record_without_a_fact_still_reads() {
        assert_eq!(serde_json::from_str::<Facts>("{}").unwrap(), Facts::default());
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(cpu_list("5"), Some(vec![5]));
        assert_eq!(cpu_list(""), None);
        assert_eq!(cpu_list("a-b"), None);
    }

    #[test]
    fn models_of_both_architectures() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: A: B\n").as_deref(), Some("A: B"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu_model(arm).as_deref(), Some("implementer 0x41 part 0xd0c"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn mitigations_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(mitigations(&folder.path().join("gone")), None);
        assert_eq!(mitigations(folder.path()).as_deref(), Some("none needed"));
        for (name, state) in
            [("b", "Mitigation: PTI\n"), ("a", "Mitigation: x\n"), ("c", "Vulnerable: y\n"), ("d", "Not affected\n")]
        {
            fs::write(folder.path().join(name), state).unwrap();
        }
        assert_eq!(mitigations(folder.path()).as_deref(), Some("mitigated: a, b; vulnerable: c"));
    }

    #[test]
    fn numbers_of_the_kernel() {
        assert_eq!(ports("32768\t60999"), Some((32768, 60999)));
        assert_eq!(kib("24576 kB"), Some(25_165_824));
        assert_eq!(kib("lots"), None);
    }
}
