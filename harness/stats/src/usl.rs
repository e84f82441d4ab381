//! The universal scalability law (Gunther 2007, *Guerrilla Capacity Planning*): throughput at concurrency N is
//! `X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))`, with contention sigma and coherency cost kappa.
//!
//! Dividing by N makes it linear in `1/lambda`, `sigma/lambda` and `kappa/lambda`; the fit is the regression that
//! minimises the squares of the relative residuals `X / X(N) - 1`. The law has a peak wherever kappa is above 0, also
//! where the system has none, so that a fit is refused more readily than given.

use crate::interval::Interval;
use crate::mean::student_quantile;

/// Fewer rungs than this leave the three parameters to chance.
const LEAST_RUNGS: usize = 7;

/// The knee is the first rung that reaches this share of the greatest throughput.
const KNEE_SHARE: f64 = 0.95;

/// Fewer rungs past the knee than this do not show what comes after it.
const LEAST_PAST_KNEE: usize = 2;

/// A ceiling is hard where it describes the rungs within this standard deviation.
const CEILING_RESIDUAL: f64 = 0.05;

/// A fit with a greater standard deviation than this does not describe the rungs.
const GREATEST_RESIDUAL: f64 = 0.10;

/// The throughput measured at one concurrency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    pub concurrency: f64,
    /// Requests a second.
    pub throughput: f64,
}

/// A parameter with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    pub value: f64,
    pub interval: Interval,
}

/// The law fitted to a ladder of rungs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslFit {
    /// Throughput at a concurrency of one.
    pub lambda: Parameter,
    /// Contention: the share of the work that is serial.
    pub sigma: Parameter,
    /// Coherency: the cost of each pair that has to agree.
    pub kappa: Parameter,
    /// The concurrency of greatest throughput, `sqrt((1 - sigma) / kappa)`. `None` unless kappa's interval lies above 0
    /// and the peak within the rungs measured: elsewhere it would be an extrapolation.
    pub peak: Option<Parameter>,
    /// The standard deviation of the relative residuals.
    pub residual: f64,
}

/// Why no fit is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UslRefusal {
    /// A concurrency below 1, a throughput that is not above 0, or one that is not finite.
    NotMeasured,
    /// Fewer than seven different concurrencies.
    TooFewRungs { found: usize },
    /// Fewer than two rungs past the knee, the first rung with 95 % of the greatest throughput.
    TooFewPastKnee { found: usize },
    /// A straight line that ends at a hard ceiling, `min(lambda N, C)`, describes the rungs within 5 % and no worse
    /// than the law, although it has a parameter less: the law's peak would be fictitious.
    HardCeiling,
    /// The best fit is more than 10 % off, or is not a throughput at every rung.
    DoesNotFit,
}

impl UslFit {
    /// Rungs may come in any order, and a concurrency more than once. Intervals are Student's t with the regression's
    /// covariance, carried to the parameters by the delta method.
    ///
    /// # Errors
    ///
    /// A [`UslRefusal`] where the rungs do not support the law.
    pub fn of(rungs: &[Rung]) -> Result<UslFit, UslRefusal> {
        let mut rungs = rungs.to_vec();
        rungs.sort_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
        check(&rungs)?;
        let line = regression(&rungs).ok_or(UslRefusal::DoesNotFit)?;
        let ceiling_squares = ceiling_squares(&rungs);
        let ceiling_residual = (ceiling_squares / (rungs.len() - 2) as f64).sqrt();
        if ceiling_squares <= line.squares && ceiling_residual <= CEILING_RESIDUAL {
            return Err(UslRefusal::HardCeiling);
        }
        let greatest = rungs.last().map_or(0.0, |rung| rung.concurrency);
        let fit = line.fit(rungs.len(), greatest);
        if fit.residual > GREATEST_RESIDUAL {
            return Err(UslRefusal::DoesNotFit);
        }
        Ok(fit)
    }

    /// The fitted throughput at `concurrency`, which has to lie within the rungs measured to mean anything.
    pub fn throughput(&self, concurrency: f64) -> f64 {
        let others = concurrency - 1.0;
        let cost = self.sigma.value * others + self.kappa.value * concurrency * others;
        self.lambda.value * concurrency / (1.0 + cost)
    }
}

/// `rungs` ascend by concurrency.
fn check(rungs: &[Rung]) -> Result<(), UslRefusal> {
    let measured = |rung: &Rung| {
        rung.concurrency >= 1.0
            && rung.concurrency.is_finite()
            && rung.throughput > 0.0
            && rung.throughput.is_finite()
    };
    if !rungs.iter().all(measured) {
        return Err(UslRefusal::NotMeasured);
    }
    let different = |rungs: &[Rung]| {
        rungs
            .chunk_by(|a, b| a.concurrency == b.concurrency)
            .count()
    };
    let found = different(rungs);
    if found < LEAST_RUNGS {
        return Err(UslRefusal::TooFewRungs { found });
    }
    let greatest = rungs.iter().map(|rung| rung.throughput).fold(0.0, f64::max);
    let past_knee = rungs
        .iter()
        .position(|rung| rung.throughput >= KNEE_SHARE * greatest)
        .map_or(0, |knee| {
            let knee = rungs[knee].concurrency;
            different(&rungs[rungs.partition_point(|rung| rung.concurrency <= knee)..])
        });
    if past_knee < LEAST_PAST_KNEE {
        return Err(UslRefusal::TooFewPastKnee { found: past_knee });
    }
    Ok(())
}

/// The regression's coefficients, `1/lambda`, `sigma/lambda` and `kappa/lambda`, and how sure they are.
struct Line {
    coefficients: [f64; 3],
    /// Inverse of the normal equations' matrix.
    inverse: [[f64; 3]; 3],
    /// The sum of the squared relative residuals.
    squares: f64,
}

/// `None` where the equations have no solution, or one that gives no throughput at some rung.
fn regression(rungs: &[Rung]) -> Option<Line> {
    let rows: Vec<[f64; 3]> = rungs
        .iter()
        .map(|rung| {
            let (n, share) = (rung.concurrency, rung.throughput / rung.concurrency);
            [share, share * (n - 1.0), share * n * (n - 1.0)]
        })
        .collect();
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for row in &rows {
        for i in 0..3 {
            right[i] += row[i];
            for j in 0..3 {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    let inverse = inverted(&normal)?;
    let coefficients = inverse.map(|row| dot(&row, &right));
    let fitted: Vec<f64> = rows.iter().map(|row| dot(row, &coefficients)).collect();
    if coefficients[0] <= 0.0 || fitted.iter().any(|ratio| *ratio <= 0.0) {
        return None;
    }
    Some(Line {
        coefficients,
        inverse,
        squares: fitted.iter().map(|ratio| (ratio - 1.0).powi(2)).sum(),
    })
}

impl Line {
    fn fit(&self, rungs: usize, greatest_concurrency: f64) -> UslFit {
        let [a, b, c] = self.coefficients;
        let degrees = rungs - 3;
        let variance = self.squares / degrees as f64;
        let spread = |gradient: [f64; 3]| {
            let carried = self.inverse.map(|row| dot(&row, &gradient));
            student_quantile(0.975, degrees as f64)
                * (variance * dot(&carried, &gradient)).max(0.0).sqrt()
        };
        let parameter = |value: f64, gradient| {
            let half_width = spread(gradient);
            Parameter {
                value,
                interval: Interval {
                    low: value - half_width,
                    high: value + half_width,
                },
            }
        };
        let kappa = parameter(c / a, [-c / a.powi(2), 0.0, 1.0 / a]);
        // On the logarithm of the peak, whose interval is the less lopsided one.
        let peak = || {
            let value = ((a - b) / c).sqrt();
            let gradient = [0.5 / (a - b), -0.5 / (a - b), -0.5 / c];
            let factor = spread(gradient).exp();
            Parameter {
                value,
                interval: Interval {
                    low: value / factor,
                    high: value * factor,
                },
            }
        };
        UslFit {
            lambda: parameter(1.0 / a, [-1.0 / a.powi(2), 0.0, 0.0]),
            sigma: parameter(b / a, [-b / a.powi(2), 1.0 / a, 0.0]),
            kappa,
            peak: (kappa.interval.low > 0.0 && a > b)
                .then(peak)
                .filter(|peak| peak.value <= greatest_concurrency),
            residual: variance.sqrt(),
        }
    }
}

/// The least sum of squared relative residuals of `min(lambda N, C)`, over every rung at which the line may end.
fn ceiling_squares(rungs: &[Rung]) -> f64 {
    (1..rungs.len())
        .map(|end| {
            let (below, above) = rungs.split_at(end);
            let slopes: Vec<f64> = below
                .iter()
                .map(|rung| rung.throughput / rung.concurrency)
                .collect();
            let levels: Vec<f64> = above.iter().map(|rung| rung.throughput).collect();
            constant_squares(&slopes) + constant_squares(&levels)
        })
        .fold(f64::INFINITY, f64::min)
}

/// The least sum of `(x / level - 1)^2` over all levels.
fn constant_squares(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let level = squares / sum;
    values
        .iter()
        .map(|value| (value / level - 1.0).powi(2))
        .sum()
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The inverse of a symmetric matrix, by cofactors of the matrix scaled to a diagonal of ones. `None` where singular.
fn inverted(matrix: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let scale = [0, 1, 2].map(|i| matrix[i][i].sqrt());
    let m = |i: usize, j: usize| matrix[i % 3][j % 3] / (scale[i % 3] * scale[j % 3]);
    let cofactor =
        |i: usize, j: usize| m(i + 1, j + 1) * m(i + 2, j + 2) - m(i + 1, j + 2) * m(i + 2, j + 1);
    let determinant = (0..3).map(|j| m(0, j) * cofactor(0, j)).sum::<f64>();
    if !determinant.is_normal() {
        return None;
    }
    Some([0, 1, 2].map(|i| [0, 1, 2].map(|j| cofactor(j, i) / determinant / (scale[i] * scale[j]))))
}
