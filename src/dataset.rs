//! The rows behind the contract, as pure functions of their id.
//!
//! Any reply can be checked without asking anyone: user `k` and order `k` are fully determined by `k`.
//! The SQL that seeds the database states the same formulas; the seeding code compares both after each run.

/// Users in the database, ids `1..=USERS`.
pub const USERS: u32 = 50_000;
/// Orders seeded in the database, ids `1..=ORDERS`. What a run inserts starts at `ORDERS + 1`.
pub const ORDERS: u32 = 200_000;

const USER_EPOCH_S: i64 = 1_700_000_000;
const ORDER_EPOCH_S: i64 = 1_710_000_000;

/// A row of `users`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Primary key, `1..=USERS`.
    pub id: u32,
    /// `User k`.
    pub name: String,
    /// `userk@example.com`.
    pub email: String,
    /// Years, 18..=77.
    pub age: u32,
    /// Seconds after the Unix epoch.
    pub created_at_s: i64,
}

/// A seeded row of `orders`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Primary key, `1..=ORDERS`.
    pub id: u32,
    /// The user it belongs to.
    pub user_id: u32,
    /// Hundredths of the currency's unit.
    pub amount_cents: u64,
    /// `USD`, `EUR` or `GBP`.
    pub currency: &'static str,
    /// Seconds after the Unix epoch.
    pub created_at_s: i64,
}

/// The user with id `k`.
pub fn user(k: u32) -> User {
    User {
        id: k,
        name: format!("User {k}"),
        email: format!("user{k}@example.com"),
        age: 18 + u32::try_from(u64::from(k) * 7919 % 60).expect("a remainder below 60"),
        created_at_s: USER_EPOCH_S + i64::from(k) - 1,
    }
}

/// The seeded order with id `k`.
pub fn order(k: u32) -> Order {
    let wide = u64::from(k);
    Order {
        id: k,
        user_id: 1 + u32::try_from(wide * 48_271 % 50_000).expect("a remainder below 50,000"),
        amount_cents: wide * 69_621 % 50_000,
        currency: ["USD", "EUR", "GBP"][k as usize % 3],
        created_at_s: ORDER_EPOCH_S + 5 * i64::from(k),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_the_published_ages() {
        let ages = [1, 121, 122, 123, 124, 4242, 50_000].map(|k| user(k).age);
        assert_eq!(ages, [77, 77, 76, 75, 74, 36, 58]);
        assert_eq!((1..=USERS).map(|k| user(k).age).sum::<u32>(), 2_375_400);
    }

    #[test]
    fn orders_have_the_published_values() {
        assert_eq!(
            order(1),
            Order { id: 1, user_id: 48_272, amount_cents: 19_621, currency: "EUR", created_at_s: 1_710_000_005 }
        );
        assert_eq!(
            order(ORDERS),
            Order { id: ORDERS, user_id: 1, amount_cents: 0, currency: "GBP", created_at_s: 1_711_000_000 }
        );
        assert_eq!((1..=ORDERS).map(|k| order(k).amount_cents).sum::<u64>(), 4_999_900_000);
    }
}
