//! The contract as data: the seven routes, the requests the driver sends and the replies a server owes.
//!
//! The reference server states the same contract in code (`server`) and imports nothing from here: the parity gate
//! reconciles the two. What lives here touches no socket, clock or file.

mod reply;
mod requests;
mod route;
pub mod token;

pub use reply::{Expected, render_user};
pub use requests::{Request, Variety, requests};
pub use route::Route;

/// The secret of the bench, used where `JWT_SECRET` is not set. Refused by our server on an address that is not loopback.
pub const BENCH_SECRET: &str = "bench-secret-do-not-use-in-production";

/// The token of user 4242 without `exp`, exactly as the contract prints it.
pub const EXAMPLE_TOKEN: &str =
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MjQyIiwiaWF0IjowfQ.nvJm66p_3YeqRjV7XTYZdDbR2ujWBEDfzyHlyEU3HjM";

/// `(n, hash)` pairs of the `cpu` route, as published with the contract.
pub const HASHES: [(u32, &str); 4] = [
    (1, "26e93d81a9553eabd165301cad992369094b6a1759a62e94a998a94aa5315902"),
    (2, "83fb0cdc24a1f9c0399eaae2744dd62e22084c3cfa102750c07a5c7681c693b6"),
    (100, "83f6da55ac4dd766361b9e0c288812a15e0ad6c5ae907d30c97e3b900c32953f"),
    (15_000, "b33317277fdbfa5b5acd01754aa83301c763d35e173df7940f21f624992541a4"),
];
