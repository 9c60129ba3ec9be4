//! Everything that is tested through a socket, a process or the command line.

mod cli;
mod compare;
mod load;
mod parity;
mod peers;
mod postgres;
mod served;
mod server;
mod support;
mod tidy;
mod wire;
