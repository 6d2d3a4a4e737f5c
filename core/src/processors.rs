//! What the system says about processors: how many the process may use, and how much of them was used.

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use crate::os;

/// How many processors this process may use: those on which it may run, or fewer if the quota of its control
/// group allows less than their whole time.
pub(crate) fn allowed() -> Option<f64> {
    let places = places()?;
    let quota = quota(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
    Some(quota.map_or(places, |quota| quota.min(places)))
}

#[cfg(target_os = "linux")]
fn places() -> Option<f64> {
    os::allowed_processors().or_else(available).map(|count| count as f64)
}

#[cfg(not(target_os = "linux"))]
fn places() -> Option<f64> {
    available().map(|count| count as f64)
}

fn available() -> Option<usize> {
    std::thread::available_parallelism().ok().map(Into::into)
}

/// The smallest quota of the control groups, by the list in `own`, that the process is in, in processors.
///
/// The standard library's `available_parallelism` knows quotas, too, but rounds them down to whole
/// processors.
fn quota(own: &Path, root: &Path) -> Option<f64> {
    let own = fs::read_to_string(own).ok()?;
    let groups = own.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let folder = match controllers {
            "" => root.to_owned(),
            some if some.split(',').any(|name| name == "cpu") => root.join("cpu"),
            _ => return None,
        };
        Some((folder.clone(), folder.join(path.trim_start_matches('/'))))
    });
    groups.filter_map(|(folder, group)| smallest_quota(&folder, group)).reduce(f64::min)
}

/// The smallest quota of a control group and those that it is in, up to `root`.
fn smallest_quota(root: &Path, group: PathBuf) -> Option<f64> {
    let groups = group.ancestors().take_while(|folder| folder.starts_with(root));
    groups.filter_map(quota_of).reduce(f64::min)
}

fn quota_of(group: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(both) => both.split_once(' ').map(|(quota, period)| (quota.to_owned(), period.to_owned()))?,
        None => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    let [quota, period] = [quota, period].map(|number| number.trim().parse::<f64>().ok());
    let processors = quota? / period?;
    (processors > 0.0).then_some(processors)
}

/// For how long a thread of this process, by the system's id, was ready to run but had no processor, in nanoseconds; `None`
/// if the system does not say.
pub fn run_delay(native_thread: u32) -> Option<u64> {
    let numbers = fs::read_to_string(format!("/proc/self/task/{native_thread}/schedstat")).ok()?;
    numbers.split_whitespace().nth(1)?.parse().ok()
}

/// How long the machine's processors have been busy since it started, and how long they have been there, in
/// the system's units.
pub(crate) fn machine_times() -> Option<(u64, u64)> {
    times_of(fs::read_to_string("/proc/stat").ok()?.lines().next()?)
}

/// User, nice, system, idle, waiting for a disk, interrupts, soft interrupts, taken by the host; what follows
/// is in user and nice, too.
fn times_of(line: &str) -> Option<(u64, u64)> {
    let times: Vec<u64> =
        line.strip_prefix("cpu ")?.split_whitespace().map_while(|time| time.parse().ok()).collect();
    let total = times.get(..8)?.iter().sum();
    Some((total - times[3] - times[4], total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_quota_of_all_groups_counts() {
        let root = std::env::temp_dir().join(format!("offlock-quota-{}", std::process::id()));
        let inner = root.join("pod/container");
        fs::create_dir_all(&inner).expect("writable");
        let own = root.join("own");
        let quota_with = |list: &str, files: &[(&str, &str)]| {
            fs::write(&own, list).expect("writable");
            files.iter().for_each(|(name, text)| fs::write(root.join(name), text).expect("writable"));
            quota(&own, &root)
        };
        assert_eq!(quota_with("0::/pod/container\n", &[]), None);
        assert_eq!(quota_with("0::/pod/container\n", &[("pod/container/cpu.max", "max 100000\n")]), None);
        assert_eq!(quota_with("0::/pod/container\n", &[("pod/cpu.max", "150000 100000\n")]), Some(1.5));
        assert_eq!(
            quota_with("0::/pod/container\n", &[("pod/container/cpu.max", "50000 100000\n")]),
            Some(0.5)
        );
        assert_eq!(quota_with("0::/elsewhere\n", &[]), None);
        fs::create_dir_all(root.join("cpu/job")).expect("writable");
        let old = [("cpu/job/cpu.cfs_quota_us", "300000\n"), ("cpu/job/cpu.cfs_period_us", "100000\n")];
        assert_eq!(quota_with("3:cpuset:/x\n4:cpu,cpuacct:/job\n", &old), Some(3.0));
        assert_eq!(quota_with("4:cpu:/job\n", &[("cpu/job/cpu.cfs_quota_us", "-1\n")]), None);
        fs::remove_dir_all(&root).expect("ours");
    }

    #[test]
    fn the_machine_is_busy_when_it_does_not_idle() {
        assert_eq!(times_of("cpu  10 20 30 400 50 6 7 8 9 10"), Some((81, 531)));
        assert_eq!(times_of("cpu  10 20 30"), None);
        assert_eq!(times_of("intr 1 2 3 4 5 6 7 8"), None);
    }

    #[test]
    fn some_processor_is_allowed() {
        assert!(allowed().is_some_and(|processors| processors > 0.0));
    }
}
