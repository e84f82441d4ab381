//! Whole campaigns on a simulated machine whose truth is known: what they find, and how often they are wrong.

mod support;

use stats::{
    Better, Comparison, Mean, NextStep, NoiseFloor, Question, Verdict, Watched, WatchedRatio,
    block_orders, log_ratio, next_step,
};
use support::Noise;

/// Two servers on a machine that is noisy and may drift.
struct Machine {
    /// How much faster server a is than server b, as the logarithm of their ratio.
    advantage: f64,
    /// The standard deviation of a trial's throughput, as a share of it.
    noise: f64,
    /// By what share the machine changes from one trial to the next.
    drift: f64,
    random: Noise,
    trials: i32,
}

impl Machine {
    fn new(advantage: f64, drift: f64, seed: u64) -> Machine {
        Machine {
            advantage,
            noise: 0.02,
            drift,
            random: Noise::seeded(seed),
            trials: 0,
        }
    }

    /// The log ratio of one block of two trials.
    fn block(&mut self, order: &[usize]) -> f64 {
        let mut throughput = [0.0; 2];
        for &server in order {
            let advantage = if server == 0 { self.advantage } else { 0.0 };
            let noise = self.random.normal(self.noise);
            throughput[server] =
                10_000.0 * (1.0 + self.drift).powi(self.trials) * (advantage + noise).exp();
            self.trials += 1;
        }
        log_ratio(throughput[0], throughput[1]).expect("throughputs above 0")
    }

    /// A campaign that stops by the rule.
    fn campaign(mut self, seed: u64) -> Vec<f64> {
        let orders = block_orders(2, 30, seed);
        let mut log_ratios = Vec::new();
        while let NextStep::RunUntil { blocks } = next_step(
            log_ratios.len(),
            &[WatchedRatio {
                watched: Watched::Throughput,
                log_ratios: &log_ratios,
            }],
        ) {
            for order in &orders[log_ratios.len()..blocks] {
                log_ratios.push(self.block(order));
            }
        }
        log_ratios
    }
}

fn verdict(comparison: Comparison) -> Verdict {
    let question = Question {
        comparison,
        better: Better::Higher,
        noise_floor: NoiseFloor::least(),
    };
    question.verdict()
}

#[test]
fn intervals_of_ten_blocks_cover_the_truth_in_95_percent_of_campaigns() {
    let campaigns = 20_000;
    let mut noise = Noise::seeded(10);
    let covered = (0..campaigns)
        .filter(|_| {
            let log_ratios: Vec<f64> = (0..10).map(|_| 0.03 + noise.normal(0.028)).collect();
            let mean = Mean::of(&log_ratios).unwrap();
            mean.interval_95().contains(0.03)
        })
        .count();
    let coverage = covered as f64 / f64::from(campaigns);
    println!("coverage of the t interval of 10 blocks: {coverage}");
    assert!((0.94..=0.96).contains(&coverage), "{coverage}");
}

#[test]
fn identical_servers_are_told_apart_in_2_to_8_percent_of_200_campaigns() {
    let (mut told_apart, mut claims, mut bootstrap_told_apart) = (0, 0, 0);
    for seed in 0..200 {
        let log_ratios = Machine::new(0.0, 0.0, seed).campaign(seed);
        let comparison = Comparison::of(&log_ratios, seed).unwrap();
        told_apart += u32::from(!comparison.interval.contains(1.0));
        bootstrap_told_apart += u32::from(!comparison.bootstrap.contains(1.0));
        claims += u32::from(matches!(
            verdict(comparison),
            Verdict::Faster | Verdict::Slower
        ));
    }
    println!(
        "of 200 campaigns of identical servers the t interval excludes 1 in {told_apart}, the \
         bootstrap-t in {bootstrap_told_apart}, and {claims} end in a claim"
    );
    assert!((4..=16).contains(&told_apart), "{told_apart} of 200");
    assert!(
        (4..=16).contains(&bootstrap_told_apart),
        "{bootstrap_told_apart} of 200"
    );
    assert!(claims <= told_apart);
}

#[test]
fn five_percent_is_found() {
    let found = (0..50)
        .filter(|&seed| {
            let log_ratios = Machine::new(1.05_f64.ln(), 0.0, seed).campaign(seed);
            let comparison = Comparison::of(&log_ratios, seed).unwrap();
            verdict(comparison) == Verdict::Faster && comparison.interval.contains(1.05)
        })
        .count();
    println!("+5 % is found, and inside the interval, in {found} of 50 campaigns");
    assert!(found >= 43, "{found} of 50");
}

/// In how many of 400 campaigns of 20 blocks the interval of identical servers covers 1 while the machine loses 0.5 %
/// with every trial.
fn covered_under_drift(orders: impl Fn(u64) -> Vec<Vec<usize>>) -> usize {
    (0..400)
        .filter(|&seed| {
            let mut machine = Machine {
                noise: 0.005,
                ..Machine::new(0.0, -0.005, seed)
            };
            let log_ratios: Vec<f64> = orders(seed)
                .iter()
                .map(|order| machine.block(order))
                .collect();
            Mean::of(&log_ratios)
                .expect("values that are finite")
                .interval_95()
                .contains(0.0)
        })
        .count()
}

#[test]
fn balanced_orders_keep_a_drift_out_of_the_ratio() {
    let covered = covered_under_drift(|seed| block_orders(2, 20, seed));
    println!("under drift the interval covers 1 in {covered} of 400 campaigns");
    assert!(covered >= 376, "{covered} of 400");
}

#[test]
fn an_unbalanced_order_would_let_it_in() {
    let covered = covered_under_drift(|_| vec![vec![0, 1]; 20]);
    assert!(covered < 100, "{covered} of 400");
}
