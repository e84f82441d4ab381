//! A plot as data: what `plots.js` draws, and the table that says the same without a picture.

use serde::Serialize;

/// Figures beyond this many digits are noise, and make pages long.
const DIGITS: i32 = 6;

/// One plot.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    /// Of its element; letters, digits and hyphens.
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    #[serde(skip)]
    pub(crate) title: String,
    /// What it shows and how it is to be read.
    #[serde(skip)]
    pub(crate) caption: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// Stands beside others rather than over the whole width.
    #[serde(skip)]
    pub(crate) small: bool,
    /// In lines of text; none for the usual height.
    #[serde(skip)]
    pub(crate) height: Option<usize>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) scale: Scale,
}

/// What the numbers of an axis mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scale {
    Linear,
    Log,
    /// 0, 1, 2 ... stand for these.
    Steps(Vec<String>),
    /// 1 / (1 - share), logarithmic: 90 %, 99 %, 99.9 % are equally far apart, as in an HdrHistogram's plot.
    Shares,
}

/// What belongs to one name in the legend may be several series.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) form: Form,
    /// Index into the palette; none for what no server made.
    pub(crate) color: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dashed: bool,
    /// x, y; of an interval x, low, high.
    pub(crate) points: Vec<Vec<f64>>,
    /// What else is to be known of each point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    Line,
    Points,
    /// Points that do not count.
    Hollow,
    Interval,
    Bars,
    /// On top of the bars before.
    Stack,
    /// An upright line at each x.
    Mark,
}

impl Series {
    pub(crate) fn new(name: &str, form: Form, color: Option<usize>) -> Series {
        Series {
            name: name.to_owned(),
            form,
            color,
            dashed: false,
            points: Vec::new(),
            remarks: Vec::new(),
        }
    }

    pub(crate) fn point(&mut self, x: f64, y: f64) {
        self.points.push(vec![short(x), short(y)]);
    }

    pub(crate) fn interval(&mut self, x: f64, low: f64, high: f64) {
        self.points.push(vec![short(x), short(low), short(high)]);
    }

    pub(crate) fn remarked(&mut self, x: f64, y: f64, remark: String) {
        self.point(x, y);
        self.remarks.push(remark);
    }

    fn is_in_the_table(&self) -> bool {
        matches!(self.form, Form::Line | Form::Bars | Form::Stack)
    }
}

/// What a figure shows, in words and numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataTable {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Figure {
    /// Its lines and bars, a row for each x; not the single points.
    pub(crate) fn table(&self) -> DataTable {
        let columns: Vec<&Series> = self
            .series
            .iter()
            .filter(|series| series.is_in_the_table() && !series.points.is_empty())
            .collect();
        let mut places: Vec<f64> = columns
            .iter()
            .flat_map(|series| &series.points)
            .map(|point| self.x.place(point[0]))
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let cell = |series: &&Series, place: f64| {
            let found = series
                .points
                .iter()
                .find(|point| self.x.place(point[0]) == place);
            found.map_or_else(|| "-".to_owned(), |point| shown(point[1]))
        };
        let row = |&place: &f64| {
            let figures = columns.iter().map(|series| cell(series, place));
            [self.x.label(place)].into_iter().chain(figures).collect()
        };
        let named = columns.iter().map(|series| match series.dashed {
            true => format!("{} (dashed)", series.name),
            false => series.name.clone(),
        });
        DataTable {
            header: [self.x.name.clone()].into_iter().chain(named).collect(),
            rows: places.iter().map(row).collect(),
        }
    }
}

impl Axis {
    pub(crate) fn new(name: &str, scale: Scale) -> Axis {
        Axis {
            name: name.to_owned(),
            scale,
        }
    }

    /// Servers stand a little beside a step, so that their points do not hide each other.
    fn place(&self, x: f64) -> f64 {
        match self.scale {
            Scale::Steps(_) => x.round(),
            _ => x,
        }
    }

    fn label(&self, place: f64) -> String {
        match &self.scale {
            Scale::Steps(labels) => labels.get(place as usize).cloned().unwrap_or_default(),
            Scale::Shares => format!("{} %", shown(100.0 - 100.0 / place)),
            Scale::Linear | Scale::Log => shown(place),
        }
    }
}

/// To six significant digits.
pub(crate) fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// As [`short`], as text.
pub(crate) fn shown(value: f64) -> String {
    format!("{}", short(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_kept_wherever_the_point_is() {
        assert_eq!(short(1_234_567.8), 1_234_570.0);
        assert_eq!(short(0.000_123_456_78), 0.000_123_457);
        assert_eq!(shown(99.999), "99.999");
        assert_eq!((short(0.0), short(f64::NAN)), (0.0, 0.0));
    }

    #[test]
    fn the_table_has_a_row_for_each_step_and_a_column_for_each_line() {
        let mut line = Series::new("deadpool", Form::Line, Some(0));
        line.point(-0.1, 10.0);
        line.point(0.9, 20.0);
        let mut other = Series::new("sqlx", Form::Line, Some(1));
        other.point(1.1, 30.5);
        let figure = Figure {
            id: "a".to_owned(),
            kind: "throughput",
            title: String::new(),
            caption: String::new(),
            x: Axis::new("connections", Scale::Steps(vec!["1".into(), "8".into()])),
            y: Axis::new("requests per second", Scale::Linear),
            series: vec![line, Series::new("deadpool", Form::Points, Some(0)), other],
            small: false,
            height: None,
        };
        let table = figure.table();
        assert_eq!(table.header, ["connections", "deadpool", "sqlx"]);
        assert_eq!(table.rows, [["1", "10", "-"], ["8", "20", "30.5"]]);
    }
}
