//! What keeps a campaign from being publishable. Everything is listed, so that a reader can judge.

use crate::campaign::{DatabaseRecord, Plan};
use crate::environment::Environment;
use crate::preset::Preset;

/// A line for each obstacle, graver ones first; none if the campaign may be published.
pub fn obstacles(plan: &Plan, environment: &Environment, database: &DatabaseRecord) -> Vec<String> {
    let mut found = lengths(plan);
    found.extend(shared_cpus(plan));
    if environment.build_profile != "release" {
        found.push("lanebench was built for debugging; build it with --release".to_owned());
    }
    match (&environment.git_commit, environment.git_dirty) {
        (Some(_), Some(false)) => {}
        (Some(_), Some(true)) => {
            found.push("files differ from the commit it was built from".to_owned());
        }
        (Some(_), None) => found.push(
            "whether files differed from the commit it was built from is not known".to_owned(),
        ),
        (None, _) => found.push("the commit it was built from is not known".to_owned()),
    }
    if let Some(governor) = environment
        .governor
        .as_deref()
        .filter(|governor| *governor != "performance")
    {
        found.push(format!(
            "the CPUs' frequency governor is `{governor}`; set it to `performance`"
        ));
    }
    if let Some(limit) = environment.cgroup_cpu_limit {
        found.push(format!(
            "a control group grants {limit:.1} CPUs at most, so it may be throttled"
        ));
    }
    if let Some(why) = &database.statements_unobserved {
        found.push(format!("statements are not observed: {why}"));
    }
    found
}

fn lengths(plan: &Plan) -> Vec<String> {
    let wanted = Preset::Publishable.length();
    let mut found = Vec::new();
    if plan.blocks < wanted.blocks {
        found.push(format!(
            "{} block(s) a rung, {} are wanted (--preset publishable)",
            plan.blocks, wanted.blocks
        ));
    }
    for (what, seconds, wanted) in [
        ("a window", plan.window_seconds, wanted.window),
        ("a warm-up", plan.warmup_seconds, wanted.warmup),
    ] {
        if seconds < wanted.as_secs_f64() {
            found.push(format!(
                "{what} of {seconds} s, {} s are wanted (--preset publishable)",
                wanted.as_secs()
            ));
        }
    }
    found
}

fn shared_cpus(plan: &Plan) -> Option<String> {
    let cpus = &plan.cpus;
    let share = |a: &[usize], b: &[usize]| a.is_empty() || a.iter().any(|cpu| b.contains(cpu));
    let apart = !share(&cpus.generator, &cpus.server)
        && !share(&cpus.generator, &cpus.database)
        && !share(&cpus.server, &cpus.database);
    (!apart).then(|| format!("roles share CPUs: {}", cpus.note))
}
