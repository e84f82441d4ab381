//! The PostgreSQL types that a workload's statement may bind or select: their names, OIDs and what is accepted as
//! a value of each.

use thiserror::Error;

/// A type that is no array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Bpchar,
    Name,
    Uuid,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Json,
    Jsonb,
    Oid,
    Inet,
    Cidr,
}

/// A scalar or an array of scalars. PostgreSQL's array types say nothing of the number of dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PgType {
    scalar: Scalar,
    array: bool,
}

/// A name that is none of a supported type's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no type {0:?} here; types are {list} and arrays of them, such as int4[]", list = PgType::NAMES.join(", "))]
pub struct UnknownType(pub String);

/// What is known of a scalar. The OIDs are those of PostgreSQL's `pg_type.dat`, fixed for all versions.
struct Facts {
    scalar: Scalar,
    oid: u32,
    array_oid: u32,
    name: &'static str,
    array_name: &'static str,
    /// The other spellings that PostgreSQL knows.
    aliases: &'static [&'static str],
    /// What a value of it may be; completes "give …".
    accepts: &'static str,
}

/// Makes the table and the way into it by OID, which every cell of a row takes: a match, and no search.
macro_rules! facts {
    ($($scalar:ident $name:literal $oid:literal $array_oid:literal $aliases:expr, $accepts:literal;)*) => {
        /// In the order of [`Scalar`]'s variants, by which it is indexed.
        static FACTS: [Facts; PgType::NAMES.len()] = [$(Facts {
            scalar: Scalar::$scalar,
            oid: $oid,
            array_oid: $array_oid,
            name: $name,
            array_name: concat!($name, "[]"),
            aliases: &$aliases,
            accepts: $accepts,
        }),*];

        impl PgType {
            /// The short names of the scalars.
            pub const NAMES: [&'static str; 23] = [$($name),*];
        }

        fn by_oid(oid: u32) -> Option<PgType> {
            match oid {
                $($oid => Some(PgType::from(Scalar::$scalar)),)*
                $($array_oid => Some(PgType::array_of(Scalar::$scalar)),)*
                _ => None,
            }
        }
    };
}

facts![
    Bool "bool" 16 1000 ["boolean"], "true or false";
    Int2 "int2" 21 1005 ["smallint"], "a whole number from -32768 to 32767, such as 42";
    Int4 "int4" 23 1007 ["int", "integer"], "a whole number from -2147483648 to 2147483647, such as 42";
    Int8 "int8" 20 1016 ["bigint"], "a whole number of at most 64 bits, such as 42";
    Float4 "float4" 700 1021 ["real"], "a number that 32 bits can hold, such as 1.5 or 1e-5";
    Float8 "float8" 701 1022 ["float", "double precision"], "a number that 64 bits can hold, such as 1.5 or 1e-5";
    Numeric "numeric" 1700 1231 ["decimal"],
        "a decimal number, such as 12.50; in JSON a string, if it is long or its scale matters";
    Text "text" 25 1009 [], "text without the character U+0000";
    Varchar "varchar" 1043 1015 ["character varying"], "text without the character U+0000";
    Bpchar "bpchar" 1042 1014 ["char", "character"], "text without the character U+0000";
    Name "name" 19 1003 [], "text of at most 63 bytes";
    Uuid "uuid" 2950 2951 [], "32 hexadecimal digits, such as 0b0f8a5e-3c57-4c1f-9c5a-5f6f2d1f4a10";
    Bytea "bytea" 17 1001 [], r"\x and pairs of hexadecimal digits, such as \x00ff";
    Date "date" 1082 1182 [], "a date, such as 2024-01-31";
    Time "time" 1083 1183 ["time without time zone"], "a time of day, such as 08:30:00";
    Timestamp "timestamp" 1114 1115 ["timestamp without time zone"],
        "a date and a time without an offset, such as 2024-01-31T08:30:00";
    Timestamptz "timestamptz" 1184 1185 ["timestamp with time zone"],
        "a date, a time and an offset, such as 2024-01-31T08:30:00Z (in a query string, + is written %2B)";
    Interval "interval" 1186 1187 [], "numbers with units and a time, such as 1 day 02:30:00";
    Json "json" 114 199 [], r#"JSON, such as {"a":1}"#;
    Jsonb "jsonb" 3802 3807 [], r#"JSON without \u0000, such as {"a":1}"#;
    Oid "oid" 26 1028 [], "a whole number from 0 to 4294967295";
    Inet "inet" 869 1041 [], "an address, such as 192.168.0.1 or 2001:db8::/32";
    Cidr "cidr" 650 651 [], "a network without bits right of its mask, such as 192.168.0.0/24";
];

impl Scalar {
    fn facts(self) -> &'static Facts {
        &FACTS[self as usize]
    }

    pub fn oid(self) -> u32 {
        self.facts().oid
    }

    pub fn name(self) -> &'static str {
        self.facts().name
    }

    pub(crate) fn accepts(self) -> &'static str {
        self.facts().accepts
    }
}

impl From<Scalar> for PgType {
    fn from(scalar: Scalar) -> Self {
        Self {
            scalar,
            array: false,
        }
    }
}

impl PgType {
    pub fn array_of(scalar: Scalar) -> Self {
        Self {
            scalar,
            array: true,
        }
    }

    /// By a name that PostgreSQL knows it by, in any case: `int4`, `integer`, `timestamp with time zone`, `text[]`.
    /// Modifiers, as in `varchar(20)`, are refused: a bound parameter has none.
    ///
    /// # Errors
    /// No type here has the name; the error lists those that there are.
    pub fn from_name(name: &str) -> Result<Self, UnknownType> {
        let (bare, array) = match name.strip_suffix("[]") {
            Some(bare) => (bare, true),
            None => (name, false),
        };
        let is = |known: &str| known.eq_ignore_ascii_case(bare);
        FACTS
            .iter()
            .find(|facts| is(facts.name) || facts.aliases.iter().any(|alias| is(alias)))
            .map(|facts| Self {
                scalar: facts.scalar,
                array,
            })
            .ok_or_else(|| UnknownType(name.to_owned()))
    }

    /// None for a type that is not supported: domains come with their base type's OID, but enums, ranges,
    /// composites and the types of extensions have their own.
    pub fn from_oid(oid: u32) -> Option<Self> {
        by_oid(oid)
    }

    pub fn oid(self) -> u32 {
        let facts = self.scalar.facts();
        if self.array {
            facts.array_oid
        } else {
            facts.oid
        }
    }

    /// PostgreSQL's short name, such as `int4` or `int4[]`.
    pub fn name(self) -> &'static str {
        let facts = self.scalar.facts();
        if self.array {
            facts.array_name
        } else {
            facts.name
        }
    }

    /// The type itself or, of an array, that of its elements.
    pub fn scalar(self) -> Scalar {
        self.scalar
    }

    /// Whether its values are text as it is, so that any text is a value.
    pub fn is_textual(self) -> bool {
        let textual = matches!(
            self.scalar,
            Scalar::Text | Scalar::Varchar | Scalar::Bpchar | Scalar::Name
        );
        textual && !self.array
    }

    pub fn is_array(self) -> bool {
        self.array
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_in_the_order_of_the_variants() {
        for (index, facts) in FACTS.iter().enumerate() {
            assert_eq!(facts.scalar as usize, index, "{}", facts.name);
        }
    }

    #[test]
    fn names_and_oids_lead_back_to_their_type() {
        for facts in &FACTS {
            for ty in [PgType::from(facts.scalar), PgType::array_of(facts.scalar)] {
                assert_eq!(PgType::from_name(ty.name()), Ok(ty));
                assert_eq!(PgType::from_oid(ty.oid()), Some(ty));
            }
        }
        assert_eq!(PgType::from_oid(600), None);
    }

    #[test]
    fn the_long_names_of_sql_are_known() {
        for (alias, name) in [
            ("INTEGER", "int4"),
            ("double precision", "float8"),
            ("timestamp with time zone[]", "timestamptz[]"),
            ("character varying", "varchar"),
            ("decimal", "numeric"),
        ] {
            assert_eq!(PgType::from_name(alias).map(PgType::name), Ok(name));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = PgType::from_name("int5").unwrap_err().to_string();
        assert!(error.starts_with(r#"there is no type "int5" here; types are bool, int2,"#));
        for name in ["varchar(20)", "int4[][]", ""] {
            assert!(PgType::from_name(name).is_err(), "{name}");
        }
    }
}
