//! Whether two campaigns may be compared: everything but what is compared has to be the same.

use crate::campaign::{Campaign, Ladder, Plan};
use crate::class::Class;

/// Where a server listens and what it is called makes no difference to its speed, and differs with every private cluster.
const SETTINGS_OF_PLACE: [&str; 4] = [
    "cluster_name",
    "listen_addresses",
    "port",
    "unix_socket_directories",
];

/// Why `a` and `b` are not comparable, a line each; they are if there is none.
pub fn refusals(a: &Campaign, b: &Campaign) -> Vec<String> {
    obstacles(a, b, IN_A_AND_B)
}

/// Why a campaign that was recorded cannot go on as it would begin now, a line each.
pub fn changes(then: &Campaign, now: &Campaign) -> Vec<String> {
    let mut lines = obstacles(then, now, ["then", "now"]);
    for (then, now) in then.servers.iter().zip(&now.servers) {
        if then.binary_sha256 != now.binary_sha256 {
            lines.push(format!("the program of {} is another one now", then.name));
        }
    }
    lines
}

/// What the two campaigns of a comparison are called.
const IN_A_AND_B: [&str; 2] = ["in A", "in B"];

fn obstacles(a: &Campaign, b: &Campaign, sides: [&'static str; 2]) -> Vec<String> {
    let mut found = Differences::between(sides);
    of_plans(&mut found, &a.plan, &b.plan);
    of_machines(&mut found, a, b);
    of_databases(&mut found, a, b);
    of_definitions(&mut found, &a.plan, &b.plan);
    of_classes(&mut found, a, b);
    found.lines
}

/// What differs and may: mostly it is what one wants to compare.
pub fn remarks(a: &Campaign, b: &Campaign) -> Vec<String> {
    let mut found = Differences::between(IN_A_AND_B);
    found.compare("lanebench", &a.lanebench, &b.lanebench);
    found.compare("commit", &commit(a), &commit(b));
    found.compare(
        "rustc",
        &shown(&a.environment.rustc),
        &shown(&b.environment.rustc),
    );
    let lock = |campaign: &Campaign| shortened(campaign.environment.cargo_lock_sha256.as_deref());
    found.compare("Cargo.lock", &lock(a), &lock(b));
    found.compare("seed", &a.plan.seed.to_string(), &b.plan.seed.to_string());
    found.compare(
        "blocks",
        &a.plan.blocks.to_string(),
        &b.plan.blocks.to_string(),
    );
    let mut same_programs: Vec<&str> = Vec::new();
    for of_a in &a.servers {
        let Some(of_b) = b.servers.iter().find(|of_b| of_b.name == of_a.name) else {
            continue;
        };
        if of_a.binary_sha256.is_some() && of_a.binary_sha256 == of_b.binary_sha256 {
            same_programs.push(&of_a.name);
            continue;
        }
        let [program_a, program_b] =
            [of_a, of_b].map(|server| shortened(server.binary_sha256.as_deref()));
        found.compare(
            &format!("the program of {}", of_a.name),
            &program_a,
            &program_b,
        );
    }
    if !same_programs.is_empty() {
        found.lines.push(format!(
            "the same program in both, so that a difference is not the server's: {}",
            same_programs.join(", ")
        ));
    }
    found.lines
}

struct Differences {
    sides: [&'static str; 2],
    lines: Vec<String>,
}

impl Differences {
    fn between(sides: [&'static str; 2]) -> Differences {
        Differences {
            sides,
            lines: Vec::new(),
        }
    }

    fn compare(&mut self, what: &str, a: &str, b: &str) {
        if a != b {
            let [of_a, of_b] = self.sides;
            self.lines.push(format!("{what}: {a} {of_a}, {b} {of_b}"));
        }
    }
}

fn of_plans(found: &mut Differences, a: &Plan, b: &Plan) {
    found.compare("pool", &a.pool.to_string(), &b.pool.to_string());
    if a.threads.is_some() || b.threads.is_some() {
        let threads = |plan: &Plan| plan.threads.unwrap_or(plan.pool).to_string();
        found.compare("threads of the blocking lanes", &threads(a), &threads(b));
    }
    let seconds = |seconds: f64| format!("{seconds} s");
    found.compare(
        "window",
        &seconds(a.window_seconds),
        &seconds(b.window_seconds),
    );
    found.compare(
        "warm-up",
        &seconds(a.warmup_seconds),
        &seconds(b.warmup_seconds),
    );
    let has_open = |plan: &Plan| {
        let mut rungs = plan.ladders.iter().flat_map(|ladder| &ladder.rungs);
        rungs.any(|rung| rung.is_open())
    };
    if has_open(a) && has_open(b) {
        let arrivals = |plan: &Plan| if plan.poisson { "poisson" } else { "uniform" };
        found.compare("arrivals", arrivals(a), arrivals(b));
    }
    // Without the note, which is words.
    let cpus = |plan: &Plan| {
        let cpus = &plan.cpus;
        format!(
            "generator {:?}, server {:?}, database {:?}",
            cpus.generator, cpus.server, cpus.database
        )
    };
    found.compare("CPUs", &cpus(a), &cpus(b));
}

fn of_machines(found: &mut Differences, a: &Campaign, b: &Campaign) {
    let (a, b) = (&a.environment, &b.environment);
    found.compare("CPU model", &shown(&a.cpu_model), &shown(&b.cpu_model));
    found.compare("number of CPUs", &a.cpus.to_string(), &b.cpus.to_string());
    found.compare(
        "threads per core",
        &shown(&a.threads_per_core),
        &shown(&b.threads_per_core),
    );
    found.compare("CPU governor", &shown(&a.governor), &shown(&b.governor));
    found.compare(
        "clock source",
        &shown(&a.clock_source),
        &shown(&b.clock_source),
    );
    found.compare(
        "CPU limit of the control group",
        &shown(&a.cgroup_cpu_limit),
        &shown(&b.cgroup_cpu_limit),
    );
    found.compare("kernel", &shown(&a.kernel), &shown(&b.kernel));
    found.compare("build profile", &a.build_profile, &b.build_profile);
}

fn of_databases(found: &mut Differences, a: &Campaign, b: &Campaign) {
    let (a, b) = (&a.database, &b.database);
    found.compare("PostgreSQL", &a.version, &b.version);
    found.compare("scale of the data", &a.scale, &b.scale);
    found.compare("between trials", &a.between_trials, &b.between_trials);
    found.compare(
        "content of the data",
        &shortened(Some(&a.content)),
        &shortened(Some(&b.content)),
    );
    let mut names: Vec<&String> = a
        .settings
        .iter()
        .chain(&b.settings)
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        if !SETTINGS_OF_PLACE.contains(&name.as_str()) {
            let value = |settings: &[(String, String)]| {
                let set = settings.iter().find(|(of, _)| of == name);
                set.map_or_else(
                    || "its default".to_owned(),
                    |(_, value)| format!("`{value}`"),
                )
            };
            found.compare(
                &format!("PostgreSQL's {name}"),
                &value(&a.settings),
                &value(&b.settings),
            );
        }
    }
}

/// Of the workloads in both.
fn of_definitions(found: &mut Differences, a: &Plan, b: &Plan) {
    for ladder in &a.ladders {
        let same_name = |other: &&Ladder| other.workload == ladder.workload;
        if let Some(other) = b.ladders.iter().find(same_name) {
            let what = format!(
                "statement and parameters of {}, by their hash",
                ladder.workload
            );
            found.compare(&what, &ladder.definition, &other.definition);
        }
    }
}

/// Of the servers in both.
fn of_classes(found: &mut Differences, a: &Campaign, b: &Campaign) {
    for of_a in &a.servers {
        if let Some(of_b) = b.servers.iter().find(|of_b| of_b.name == of_a.name) {
            let in_words = |lane| Class::of_lane(lane).in_words();
            found.compare(&of_a.name, in_words(of_a.lane), in_words(of_b.lane));
        }
    }
}

fn shown<T: ToString>(value: &Option<T>) -> String {
    value
        .as_ref()
        .map_or_else(|| "unknown".to_owned(), T::to_string)
}

fn shortened(hash: Option<&str>) -> String {
    hash.map_or_else(
        || "unknown".to_owned(),
        |hash| hash.chars().take(12).collect(),
    )
}

fn commit(campaign: &Campaign) -> String {
    let environment = &campaign.environment;
    let dirty = if environment.git_dirty == Some(true) {
        " with changes"
    } else {
        ""
    };
    format!("{}{dirty}", shortened(environment.git_commit.as_deref()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::made_up::{campaign, closed};

    fn refused(place: &str, value: Value) -> Vec<String> {
        let made_up = campaign(&["deadpool"], &[closed(8)], 2, &|_, _, _| 1e4);
        let mut other = made_up.clone();
        *other.pointer_mut(place).unwrap() = value;
        let [a, b] = [made_up, other].map(|made_up| serde_json::from_value(made_up).unwrap());
        refusals(&a, &b)
    }

    #[test]
    fn whatever_else_could_make_the_difference_is_refused_by_name() {
        let cases = [
            ("/plan/pool", json!(32), "pool: 16 in A, 32 in B"),
            (
                "/plan/threads",
                json!(4),
                "threads of the blocking lanes: 16 in A, 4 in B",
            ),
            (
                "/plan/window_seconds",
                json!(70.0),
                "window: 3 s in A, 70 s in B",
            ),
            (
                "/plan/warmup_seconds",
                json!(15.0),
                "warm-up: 1 s in A, 15 s in B",
            ),
            (
                "/plan/cpus/server",
                json!([0, 2]),
                "CPUs: generator [1], server [0], database [0] in A, generator [1], server [0, 2], database [0] in B",
            ),
            (
                "/environment/cpu_model",
                json!("Other"),
                "CPU model: Made Up 9000 in A, Other in B",
            ),
            (
                "/environment/kernel",
                json!(null),
                "kernel: 6.1 in A, unknown in B",
            ),
            (
                "/environment/build_profile",
                json!("debug"),
                "build profile: release in A, debug in B",
            ),
            (
                "/database/version",
                json!("16.1"),
                "PostgreSQL: 17.2 in A, 16.1 in B",
            ),
            (
                "/database/scale",
                json!("0.1"),
                "scale of the data: 1 in A, 0.1 in B",
            ),
            (
                "/database/content",
                json!("beef"),
                "content of the data: c0ffee in A, beef in B",
            ),
            (
                "/database/between_trials",
                json!("nothing"),
                "between trials: made up in A, nothing in B",
            ),
            (
                "/database/settings/0/1",
                json!("off"),
                "PostgreSQL's fsync: `on` in A, `off` in B",
            ),
            (
                "/plan/ladders/0/definition",
                json!("another"),
                "statement and parameters of point-read, by their hash: made up in A, another in B",
            ),
            (
                "/servers/0/lane",
                json!("pipelined"),
                "deadpool: one statement in flight on each connection in A, several statements in flight on each connection in B",
            ),
        ];
        for (place, value, line) in cases {
            assert_eq!(refused(place, value), [line]);
        }
    }

    #[test]
    fn what_makes_no_difference_is_not_refused() {
        for (place, value) in [
            ("/database/settings/1/1", json!("5432")),
            ("/servers/0/binary_sha256", json!("other")),
            ("/plan/cpus/note", json!("other words")),
            ("/plan/threads", json!(16)),
            ("/plan/poisson", json!(false)),
            ("/environment/git_commit", json!("fedcba9876543210")),
        ] {
            assert_eq!(refused(place, value), [] as [&str; 0], "{place}");
        }
    }

    #[test]
    fn a_setting_that_only_one_of_them_has_is_refused() {
        let lines = refused("/database/settings/0", json!(["work_mem", "64MB"]));
        let expected = [
            "PostgreSQL's fsync: `on` in A, its default in B",
            "PostgreSQL's work_mem: its default in A, `64MB` in B",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_servers_programs_are_named_and_the_same_program_is_pointed_out() {
        let a = campaign(&["deadpool", "sqlx"], &[closed(8)], 2, &|_, _, _| 1e4);
        let mut b = a.clone();
        b["servers"][1]["binary_sha256"] = json!("0123456789abcdef");
        let [a, b] = [a, b].map(|made_up| serde_json::from_value(made_up).unwrap());
        let expected = [
            "the program of sqlx: abc in A, 0123456789ab in B",
            "the same program in both, so that a difference is not the server's: deadpool",
        ];
        assert_eq!(remarks(&a, &b), expected);
    }
}
