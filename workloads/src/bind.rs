//! Typed parameters of a statement: how the harness draws them, and how a server reads them.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use crate::{Distribution, Method, PgType, Sampler, Value, ValueError};

/// A typed parameter of a statement.
#[derive(Debug, Clone)]
pub struct Bind {
    pub name: String,
    pub pg_type: PgType,
    pub draw: Draw,
}

/// Where the values of a parameter come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Draw {
    Number(Distribution),
    /// The number within a text, in the place of `{}`.
    Formatted(Distribution, String),
    /// So many distinct numbers, ascending: an array.
    Numbers(Distribution, usize),
    /// One of these, each as likely as any other.
    Choice(Vec<String>),
    /// A text in which the load engine writes a number that no other request has, in the place of
    /// [`UNIQUE`](crate::UNIQUE). `repeats` requests in a hundred have one of these many texts again instead.
    Unique {
        text: String,
        repeats: u32,
    },
}

/// Stands for the number that the load engine gives each request it sends.
pub const UNIQUE: &str = "{n}";
/// How many digits that number has.
pub const UNIQUE_DIGITS: u8 = 12;
/// Of the texts that are sent again and again, there are so many.
const REPEATED: i32 = 64;

/// A parameter's values, one after another.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    bind: &'a Bind,
    sampler: Sampler,
}

/// One value in the two forms a request may carry it in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) text: String,
    pub(crate) json: Json,
}

impl Bind {
    pub(crate) fn values(&self, seed: u64) -> Values<'_> {
        let uniform = |to| Distribution::Uniform { from: 1, to };
        let distribution = match &self.draw {
            Draw::Number(distribution)
            | Draw::Formatted(distribution, _)
            | Draw::Numbers(distribution, _) => *distribution,
            Draw::Choice(choices) => uniform(i32::try_from(choices.len()).unwrap_or(i32::MAX)),
            // Of a hundred numbers and as many more as there are texts to repeat: see `draw`.
            Draw::Unique { .. } => uniform(100 * REPEATED),
        };
        Values {
            bind: self,
            sampler: distribution.sampler(seed),
        }
    }

    /// How many values there are to draw from; nothing where they never repeat.
    pub(crate) fn population(&self) -> Option<usize> {
        match &self.draw {
            Draw::Number(distribution) | Draw::Formatted(distribution, _) => {
                Some(distribution.population())
            }
            Draw::Choice(choices) => Some(choices.len()),
            Draw::Numbers(..) | Draw::Unique { .. } => None,
        }
    }

    /// Whether what is drawn is of the parameter's type.
    ///
    /// # Errors
    /// Some value is not.
    pub(crate) fn check(&self, method: Method) -> Result<(), ValueError> {
        let fits = |drawn: &Drawn| match method {
            Method::Get => self.from_text(&drawn.text),
            _ => self.from_json(&drawn.json),
        };
        let extremes = self.extremes();
        extremes.iter().try_for_each(|drawn| fits(drawn).map(drop))
    }

    /// If these values are of a type, so is every other that may be drawn.
    fn extremes(&self) -> Vec<Drawn> {
        let ends = |distribution: &Distribution| <[i32; 2]>::from(distribution.bounds());
        match &self.draw {
            Draw::Number(distribution) => ends(distribution).map(number).into(),
            Draw::Formatted(distribution, around) => ends(distribution)
                .map(|number| formatted(around, number))
                .into(),
            Draw::Numbers(distribution, _) => vec![numbers(ends(distribution).into())],
            Draw::Choice(choices) => choices.iter().map(|choice| self.chosen(choice)).collect(),
            Draw::Unique { text: unique, .. } => vec![text(unique.clone())],
        }
    }

    /// A number or `true` is written as such in JSON; a text that is no JSON is a text.
    fn chosen(&self, choice: &str) -> Drawn {
        let json = match self.pg_type.is_textual() {
            true => Err(()),
            false => serde_json::from_str(choice).map_err(drop),
        };
        Drawn {
            json: json.unwrap_or_else(|()| Json::String(choice.to_owned())),
            text: choice.to_owned(),
        }
    }

    /// The value a request has in its URL.
    ///
    /// # Errors
    /// It is not of the parameter's type.
    pub fn from_text(&self, text: &str) -> Result<Value, ValueError> {
        Value::from_text(self.pg_type, text)
    }

    /// The value a request has in its body.
    ///
    /// # Errors
    /// It is not of the parameter's type.
    pub fn from_json(&self, json: &Json) -> Result<Value, ValueError> {
        Value::from_json(self.pg_type, json)
    }
}

impl Values<'_> {
    pub(crate) fn draw(&mut self) -> Drawn {
        let drawn = self.sampler.draw();
        match &self.bind.draw {
            Draw::Number(_) => number(drawn),
            Draw::Formatted(_, around) => formatted(around, drawn),
            Draw::Numbers(_, count) => numbers(distinct(drawn, &mut self.sampler, *count)),
            Draw::Choice(choices) => {
                let place = usize::try_from(drawn - 1).unwrap_or(0);
                self.bind
                    .chosen(choices.get(place).map_or("", String::as_str))
            }
            Draw::Unique {
                text: unique,
                repeats,
            } => {
                let from_zero = drawn.unsigned_abs() - 1;
                let (percent, again) = (from_zero % 100, from_zero / 100);
                match percent < *repeats {
                    true => text(unique.replace(UNIQUE, &format!("again-{again}"))),
                    false => text(unique.clone()),
                }
            }
        }
    }
}

fn number(number: i32) -> Drawn {
    Drawn {
        text: number.to_string(),
        json: number.into(),
    }
}

fn formatted(around: &str, number: i32) -> Drawn {
    text(around.replace("{}", &number.to_string()))
}

fn text(text: String) -> Drawn {
    Drawn {
        json: Json::String(text.clone()),
        text,
    }
}

fn numbers(numbers: Vec<i32>) -> Drawn {
    let listed: Vec<String> = numbers.iter().map(i32::to_string).collect();
    Drawn {
        text: format!("{{{}}}", listed.join(",")),
        json: numbers.into(),
    }
}

/// `count` different values of a sampler, ascending, of which `first` is one. The definition's validation sees to it that
/// there are as many.
pub(crate) fn distinct(first: i32, sampler: &mut Sampler, count: usize) -> Vec<i32> {
    let mut drawn = BTreeSet::from([first]);
    while drawn.len() < count {
        drawn.insert(sampler.draw_other(|value| drawn.contains(&value)));
    }
    drawn.into_iter().collect()
}

/// The JSON object that a request carries its parameters in.
pub(crate) fn json_object<'a>(values: impl Iterator<Item = (&'a Bind, &'a Drawn)>) -> String {
    let object: Map<String, Json> = values
        .map(|(bind, drawn)| (bind.name.clone(), drawn.json.clone()))
        .collect();
    Json::Object(object).to_string()
}
