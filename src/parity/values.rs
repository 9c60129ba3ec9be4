//! Values of one run, drawn from its seed: they differ from those of the load and from run to run, so that nothing
//! can be answered from memory; the seed in the verdict brings them back.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::dataset::USERS;

/// Users read one by one.
pub(super) const READ_USERS: usize = 6;
/// Different ids asked for at the same time. More than the ten connections a server may have to Postgres.
pub(super) const CONCURRENT_READS: usize = 120;
/// Orders posted at the same time.
pub(super) const CONCURRENT_ORDERS: usize = 20;

/// An order to post; the amount in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OrderValues {
    pub(super) user_id: u32,
    pub(super) cents: u32,
    pub(super) currency: &'static str,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Values {
    /// Existing, different.
    pub(super) users: [u32; READ_USERS],
    /// Existing, different.
    pub(super) concurrent_users: Vec<u32>,
    /// Beyond the last user.
    pub(super) missing_user: u32,
    /// Of the echo bodies.
    pub(super) name: String,
    /// Of the echo bodies.
    pub(super) email: String,
    /// Of the echo bodies.
    pub(super) age: u32,
    /// Beyond the pages the load asks for; whole with [`limit`](Self::limit).
    pub(super) page: u32,
    /// Not 20.
    pub(super) limit: u32,
    /// Rounds of `cpu`, few enough to compute here.
    pub(super) rounds: u32,
    /// One alone.
    pub(super) order: OrderValues,
    /// Posted at the same time; amounts all different.
    pub(super) concurrent_orders: Vec<OrderValues>,
}

impl Values {
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut chosen = Vec::with_capacity(CONCURRENT_READS + READ_USERS);
        // Bounded in practice: 126 of 50,000 ids collide about never.
        while chosen.len() < CONCURRENT_READS + READ_USERS {
            let id = random.random_range(2..USERS);
            if !chosen.contains(&id) {
                chosen.push(id);
            }
        }
        let concurrent_users = chosen.split_off(READ_USERS);
        let users = chosen.try_into().expect("as many as were left");
        let number = random.random_range(10_000..100_000_u32);
        let limit = random.random_range(3..=19);
        let concurrent_orders = (1..=CONCURRENT_ORDERS).map(|k| order(&mut random, k)).collect();
        Self {
            users,
            concurrent_users,
            missing_user: random.random_range(USERS + 1..=2_000_000_000),
            name: format!("Ada Quill {number}"),
            email: format!("ada.{number}@mail.example.org"),
            age: random.random_range(18..=99),
            page: random.random_range(21..=900),
            limit,
            rounds: random.random_range(3..=999),
            order: order(&mut random, 0),
            concurrent_orders,
        }
    }

    /// An echo body with these values and one tag.
    pub(super) fn echo(&self) -> String {
        let Self { name, email, age, .. } = self;
        format!(r#"{{"name":"{name}","email":"{email}","age":{age},"tags":["seen {age}"]}}"#)
    }
}

impl OrderValues {
    /// As it is posted.
    pub(super) fn body(&self) -> String {
        let Self { user_id, currency, .. } = self;
        format!(r#"{{"userId":{user_id},"amount":{},"currency":"{currency}"}}"#, self.amount())
    }

    /// As it must be answered.
    pub(super) fn amount(&self) -> String {
        format!("{}.{:02}", self.cents / 100, self.cents % 100)
    }
}

/// `distinct` makes amounts differ: it is their number of whole thousands.
fn order(random: &mut StdRng, distinct: usize) -> OrderValues {
    let thousands = u32::try_from(distinct).expect("a few orders");
    OrderValues {
        user_id: random.random_range(1..=USERS),
        cents: 100_000 * thousands + random.random_range(0..100_000),
        currency: ["USD", "EUR", "GBP"][random.random_range(0..3)],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_seed_brings_its_values_back_and_another_seed_brings_others() {
        assert_eq!(Values::from_seed(5), Values::from_seed(5));
        assert_ne!(Values::from_seed(5), Values::from_seed(6));
    }

    #[test]
    fn values_stay_inside_the_contract() {
        for seed in 0..200 {
            let values = Values::from_seed(seed);
            assert!(values.page * values.limit <= USERS, "{values:?}");
            let users: HashSet<u32> = values.concurrent_users.iter().chain(&values.users).copied().collect();
            assert_eq!(users.len(), CONCURRENT_READS + READ_USERS);
            assert!(users.iter().all(|id| (1..=USERS).contains(id)));
            let amounts: HashSet<u32> = values.concurrent_orders.iter().map(|order| order.cents).collect();
            assert_eq!(amounts.len(), CONCURRENT_ORDERS);
        }
    }
}
