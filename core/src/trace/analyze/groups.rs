//! Groups of threads: the threads of a pool are one thing to whoever reads a summary.
//!
//! Threads belong together if they have the same name apart from one number: `puma srv tp 001`,
//! `ThreadPoolExecutor-0_3`, `Thread-7 (process_request_thread)`, `worker 1`. Many pools whose names differ in another number
//! are one group, too, such as the executors that a server makes for each request.

use std::collections::{HashMap, HashSet};

/// The most pools of the same kind that are groups of their own.
const POOLS: usize = 4;

/// Threads by their group.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The members of each group, by index, in the order of their definition.
    pub(super) members: Vec<Vec<usize>>,
    /// The group of each thread.
    pub(super) of: Vec<usize>,
    /// The name that the members share, with `*` in place of the number; the thread's own name if it is the
    /// only one.
    pub(super) names: Vec<String>,
}

impl Groups {
    /// The groups of threads with these names, in the order of their first members.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut groups = Self::default();
        let mut known = HashMap::new();
        let mut first = Vec::new();
        let names: Vec<&str> = names.collect();
        let mut pools: HashMap<String, HashSet<String>> = HashMap::new();
        for pattern in names.iter().map(|name| pattern(name)) {
            pools.entry(self::pattern(&pattern)).or_default().insert(pattern);
        }
        for (thread, name) in names.into_iter().enumerate() {
            let pattern = pattern(name);
            let of_pools = self::pattern(&pattern);
            let pattern = if pools[&of_pools].len() > POOLS { of_pools } else { pattern };
            let group = *known.entry(pattern.clone()).or_insert_with(|| {
                groups.members.push(Vec::new());
                groups.names.push(pattern);
                first.push(name);
                groups.members.len() - 1
            });
            groups.members[group].push(thread);
            groups.of.push(group);
        }
        for (group, members) in groups.members.iter().enumerate() {
            if members.len() == 1 {
                groups.names[group] = first[group].to_owned();
            }
        }
        groups
    }
}

/// The name with `*` in place of the number that distinguishes the threads of a pool: of Python's default
/// names the one behind `Thread-`, otherwise the last one, unless it is the number of a line.
pub(super) fn pattern(name: &str) -> String {
    let number = match name.strip_prefix("Thread-") {
        Some(rest) if rest.starts_with(|letter: char| letter.is_ascii_digit()) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            Some((name.len() - rest.len(), digits))
        }
        _ => last_number(name),
    };
    match number {
        Some((start, length)) => format!("{}*{}", &name[..start], &name[start + length..]),
        None => name.to_owned(),
    }
}

/// Where the last number in `name` begins, and how many digits it has.
fn last_number(name: &str) -> Option<(usize, usize)> {
    let end = name.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let digits = name[..end].bytes().rev().take_while(u8::is_ascii_digit).count();
    let start = end - digits;
    let is_line = [".rb:", ".py:"].iter().any(|suffix| name[..start].ends_with(suffix));
    (!is_line).then_some((start, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_pool_are_one_group() {
        for (name, expected) in [
            ("puma srv tp 001", "puma srv tp *"),
            ("ThreadPoolExecutor-0_3", "ThreadPoolExecutor-0_*"),
            ("Thread-7 (process_request_thread)", "Thread-* (process_request_thread)"),
            ("Thread-12", "Thread-*"),
            ("Thread-1 (worker 2)", "Thread-* (worker 2)"),
            ("worker 1", "worker *"),
            ("Ractor #3", "Ractor #*"),
            ("sidekiq 3 of 10", "sidekiq 3 of *"),
            ("app.rb:12", "app.rb:12"),
            ("app.rb:12 block 3", "app.rb:12 block *"),
            ("MainThread", "MainThread"),
            ("", ""),
            ("日本3", "日本*"),
        ] {
            assert_eq!(pattern(name), expected);
        }
    }

    #[test]
    fn many_pools_of_a_kind_are_one_group() {
        let names: Vec<String> =
            (0..12).map(|number| format!("ThreadPoolExecutor-{}_{number}", number / 2)).collect();
        let groups = Groups::new(names.iter().take(8).map(String::as_str));
        assert_eq!(groups.names[0], "ThreadPoolExecutor-0_*");
        assert_eq!(groups.members.len(), 4);
        let groups = Groups::new(names.iter().map(String::as_str));
        assert_eq!(groups.names, ["ThreadPoolExecutor-*_*"]);
    }

    #[test]
    fn a_thread_alone_keeps_its_name() {
        let groups = Groups::new(["worker 1", "main", "job 7", "worker 2"].into_iter());
        assert_eq!(groups.names, ["worker *", "main", "job 7"]);
        assert_eq!(groups.members, [vec![0, 3], vec![1], vec![2]]);
        assert_eq!(groups.of, [0, 1, 2, 0]);
    }
}
