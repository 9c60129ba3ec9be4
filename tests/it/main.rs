//! Everything that is tested through a socket, a process or the command line.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says where; the lint's own exception covers only test functions"
)]

mod cli;
mod compare;
mod floor;
mod fuzz;
mod load;
mod load_command;
mod load_endpoints;
mod parity;
mod parity_command;
mod peers;
mod postgres;
mod served;
mod server;
mod server_input;
mod server_jwt;
mod server_life;
mod server_limits;
mod server_wire;
mod session;
mod support;
mod tidy;
mod wire;
