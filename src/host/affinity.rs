//! Which CPUs a process may use, and keeping it to some of them.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The CPUs that the calling thread may use, ascending.
///
/// # Errors
/// Where the kernel does not say.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// Keeps the calling thread, and those it starts from now on, to `cpus`.
///
/// # Errors
/// Where the kernel refuses, such as for a CPU outside the allowed ones.
pub fn keep_to(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// `0,2-3` → 0, 2, 3; ascending, each once.
///
/// # Errors
/// Says what is wrong with the text.
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, String> {
    let number = |text: &str| text.trim().parse().ok().filter(|&cpu: &usize| cpu < CpuSet::count());
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        match (number(low), number(high)) {
            (Some(low), Some(high)) if low <= high => cpus.extend(low..=high),
            _ => return Err(format!("{part:?} is no CPU and no range of them: write them like 0,2-3")),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_numbers_and_ranges() {
        assert_eq!(parse_cpus("1"), Ok(vec![1]));
        assert_eq!(parse_cpus("3,0-1, 1"), Ok(vec![0, 1, 3]));
        for wrong in ["", "a", "1-", "-1", "2-1", "1,,2", "1024", "0-9999999"] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_thread_keeps_to_a_cpu() {
        let first = allowed_cpus().unwrap()[0];
        let inside = std::thread::spawn(move || {
            keep_to(&[first]).unwrap();
            allowed_cpus().unwrap()
        });
        assert_eq!(inside.join().unwrap(), [first]);
        assert!(std::thread::spawn(|| keep_to(&[CpuSet::count() - 1])).join().unwrap().is_err());
    }
}
