//! Control groups, versions 1 and 2: whether a CPU limit held a process back, and how long the generator's own group
//! waited for a CPU. See cgroups(7) and the kernel's Documentation/admin-guide/cgroup-v2.

use std::fs;
use std::path::{Path, PathBuf};

use super::pressure_us;
use crate::checks::Seen;

/// The CPU limits that some processes are under: those of their groups and of all groups above.
#[derive(Debug, Clone)]
pub struct Throttling {
    files: Vec<PathBuf>,
}

impl Throttling {
    /// Of processes by their pids.
    pub fn of(pids: &[u32]) -> Seen<Throttling> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut files = Vec::new();
        for pid in pids {
            let file = format!("/proc/{pid}/cgroup");
            let groups = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
            for folder in cpu_folders(&groups, &mounts) {
                let file = folder.join("cpu.stat");
                if throttled_periods(&file).is_some() && !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        if files.is_empty() {
            return Err("no control group here counts throttled periods".to_owned());
        }
        Ok(Throttling { files })
    }

    /// Running total over all of them.
    pub fn periods(&self) -> u64 {
        self.files
            .iter()
            .filter_map(|file| throttled_periods(file))
            .sum()
    }
}

fn throttled_periods(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("nr_throttled "))?;
    line.trim().parse().ok()
}

/// The pressure of the generator's own control group.
#[derive(Debug, Clone)]
pub struct Pressure {
    file: PathBuf,
}

impl Pressure {
    /// `others` are the server and, where it is known, the database: in a group with them the generator's waits cannot be
    /// told from theirs. That is so for the whole machine's pressure as well.
    pub fn of(generator: u32, others: &[u32]) -> Seen<Pressure> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let groups = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup"));
        // A process that cannot be seen is not in a group of ours.
        let others: Vec<String> = others.iter().filter_map(|&pid| groups(pid).ok()).collect();
        let own = own_folder(&groups(generator).unwrap_or_default(), &others, &mounts)?;
        let pressure = Pressure {
            file: own.join("cpu.pressure"),
        };
        pressure.waited_us()?;
        Ok(pressure)
    }

    /// Microseconds in which some task of the group waited for a CPU, running total.
    pub fn waited_us(&self) -> Seen<u64> {
        let unseen = |why: String| format!("{}: {why}", self.file.display());
        let text = fs::read_to_string(&self.file).map_err(|error| unseen(error.to_string()))?;
        pressure_us(&text).ok_or_else(|| unseen("no total".to_owned()))
    }
}

/// The folder of the generator's group, if none of the others is in it.
fn own_folder(generator: &str, others: &[String], mounts: &str) -> Seen<PathBuf> {
    let Some((mount, own)) = unified_folder(generator, mounts) else {
        return Err("no control group of version 2 here".to_owned());
    };
    let shared = others
        .iter()
        .filter_map(|groups| unified_folder(groups, mounts))
        .any(|(_, folder)| folder.starts_with(&own));
    if own == mount || shared {
        return Err(
            "the generator has no control group of its own; a pressure that counts server and database too says nothing about it".to_owned(),
        );
    }
    Ok(own)
}

/// The folder of a process's group and all above it up to the mount, for whichever version has the CPU controller.
fn cpu_folders(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let found = controlled_folder(groups, mounts).or_else(|| unified_folder(groups, mounts));
    let Some((mount, folder)) = found else {
        return Vec::new();
    };
    let inside = |folder: &&Path| folder.starts_with(&mount);
    folder
        .ancestors()
        .take_while(inside)
        .map(Path::to_owned)
        .collect()
}

/// Version 1: mount and folder of the hierarchy with the CPU controller.
fn controlled_folder(groups: &str, mounts: &str) -> Option<(PathBuf, PathBuf)> {
    let has_cpu = |list: &str| list.split(',').any(|controller| controller == "cpu");
    let path = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        has_cpu(controllers).then(|| fields.next())?
    })?;
    let mount =
        Mount::all(mounts).find(|mount| mount.kind == "cgroup" && has_cpu(mount.options))?;
    Some(mount.place(path))
}

/// Version 2: mount and folder of the one hierarchy.
fn unified_folder(groups: &str, mounts: &str) -> Option<(PathBuf, PathBuf)> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = Mount::all(mounts).find(|mount| mount.kind == "cgroup2")?;
    Some(mount.place(path))
}

/// A line of mountinfo, see proc_pid_mountinfo(5): `36 35 0:33 ROOT POINT options [tags] - KIND source OPTIONS`.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn all(mounts: &'a str) -> impl Iterator<Item = Mount<'a>> {
        mounts.lines().filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let mut left = left.split(' ').skip(3);
            let mut right = right.split(' ');
            Some(Mount {
                root: left.next()?,
                point: left.next()?,
                kind: right.next()?,
                options: right.nth(1)?,
            })
        })
    }

    /// The mount and the folder of a group below it. In a container the mount may show a part of the hierarchy only.
    fn place(&self, path: &str) -> (PathBuf, PathBuf) {
        let path = Path::new(path);
        let below = path.strip_prefix(self.root).or(path.strip_prefix("/"));
        let mount = PathBuf::from(self.point);
        let folder = below.map_or_else(|_| mount.clone(), |below| mount.join(below));
        (mount, folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw,relatime master:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
";
    const V1_GROUPS: &str =
        "9:name=systemd:/docker/abc\n3:cpuset:/docker/abc\n1:cpu,cpuacct:/docker/abc/bench\n0::/\n";
    const V2_MOUNTS: &str =
        "35 23 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V2_GROUPS: &str = "0::/user.slice/bench.scope\n";

    fn folders(groups: &str, mounts: &str) -> Vec<String> {
        let folders = cpu_folders(groups, mounts);
        folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect()
    }

    #[test]
    fn limits_are_those_of_the_group_and_of_all_above_in_both_versions() {
        assert_eq!(
            folders(V1_GROUPS, V1_MOUNTS),
            [
                "/sys/fs/cgroup/cpu,cpuacct/bench",
                "/sys/fs/cgroup/cpu,cpuacct"
            ]
        );
        assert_eq!(
            folders(V2_GROUPS, V2_MOUNTS),
            [
                "/sys/fs/cgroup/user.slice/bench.scope",
                "/sys/fs/cgroup/user.slice",
                "/sys/fs/cgroup"
            ]
        );
        assert!(folders("", V2_MOUNTS).is_empty() && folders(V2_GROUPS, "").is_empty());
    }

    #[test]
    fn throttled_periods_are_read_where_they_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cpu.stat");
        assert_eq!(throttled_periods(&file), None);
        fs::write(&file, "usage_usec 5\nuser_usec 3\nsystem_usec 2\n").unwrap();
        assert_eq!(throttled_periods(&file), None);
        fs::write(&file, "nr_periods 9\nnr_throttled 4\nthrottled_usec 77\n").unwrap();
        assert_eq!(throttled_periods(&file), Some(4));
        let throttling = Throttling { files: vec![file] };
        assert_eq!(throttling.periods(), 4);
    }

    #[test]
    fn the_generators_pressure_is_seen_in_a_group_of_its_own_alone() {
        let others = |groups: &str| [groups.to_owned()];
        let own = |others: &[String]| own_folder(V2_GROUPS, others, V2_MOUNTS);
        let apart = own(&others("0::/user.slice/server.scope\n"));
        assert_eq!(
            apart,
            Ok(PathBuf::from("/sys/fs/cgroup/user.slice/bench.scope"))
        );
        assert!(own(&others(V2_GROUPS)).is_err());
        assert!(own(&others("0::/user.slice/bench.scope/server\n")).is_err());
        assert!(own_folder("0::/\n", &[], V2_MOUNTS).is_err());
        assert!(own_folder(V1_GROUPS, &[], V1_MOUNTS).is_err());
    }

    #[test]
    fn pressure_is_read_from_the_groups_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cpu.pressure");
        fs::write(&file, "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n").unwrap();
        assert_eq!(Pressure { file }.waited_us(), Ok(1234));
    }
}
