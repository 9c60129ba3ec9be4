//! The seven routes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A route of the contract. Order is the order of every table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// `GET /health`: a handler and a small reply, nothing else.
    Health,
    /// `POST /echo`: parse, validate, strip, answer.
    Echo,
    /// `GET /me`: verify a token, read one row.
    Me,
    /// `GET /users/{id}`: read one row.
    User,
    /// `GET /users?page&limit`: read twenty rows.
    List,
    /// `POST /orders`: validate, insert one row.
    Order,
    /// `GET /cpu?n`: n chained SHA-256 hashes.
    Cpu,
}

impl Route {
    /// All seven, in table order.
    pub const ALL: [Self; 7] = [Self::Health, Self::Echo, Self::Me, Self::User, Self::List, Self::Order, Self::Cpu];

    /// The name used in records, flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Echo => "echo",
            Self::Me => "me",
            Self::User => "user",
            Self::List => "list",
            Self::Order => "order",
            Self::Cpu => "cpu",
        }
    }

    /// The status of a happy reply: 201 for `order`, else 200.
    pub fn success_status(self) -> u16 {
        if self == Self::Order { 201 } else { 200 }
    }

    /// Whether each request executes one statement.
    pub fn uses_database(self) -> bool {
        matches!(self, Self::Me | Self::User | Self::List | Self::Order)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name is none of the seven.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no route is named {0:?}: use one of health, echo, me, user, list, order, cpu")]
pub struct UnknownRoute(String);

impl FromStr for Route {
    type Err = UnknownRoute;

    fn from_str(name: &str) -> Result<Self, UnknownRoute> {
        Self::ALL.into_iter().find(|route| route.name() == name).ok_or_else(|| UnknownRoute(name.to_owned()))
    }
}
