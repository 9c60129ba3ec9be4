//! The settings of the private cluster, each with its reason. They are given on the command line, so that what runs is
//! what is written here; a record stores what the server itself reports.

/// Name and value of everything that is set.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    // Reached by password over loopback only, as every peer reaches it; no socket file in a folder others can list.
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    // Promised by the contract: each insert is on disk before it is answered. These are the defaults, spelled out.
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    // A peer may open ten connections. One that opens more must be seen and counted, not be refused into errors of
    // another kind; and a whole test run of servers with ten connections each fits.
    ("max_connections", "200"),
    // The whole database (60 MB) with room for what a long run inserts: reads never wait for the disk. Ordinary anonymous
    // memory, touched as it is needed, so a small /dev/shm or host is no obstacle.
    ("shared_buffers", "256MB"),
    // A checkpoint inside a window voids it. The harness checkpoints before each window; these push the automatic ones out:
    // by time an hour, by volume some 4 GB of log, ten times what the fastest insert window writes. A ceiling, not an
    // allocation.
    ("checkpoint_timeout", "1h"),
    ("max_wal_size", "8GB"),
    // Log files are kept and reused: otherwise the first insert window creates and zeroes them, and later ones do not.
    ("min_wal_size", "512MB"),
    // A vacuum inside a window is noise in CPU and disk, in somebody's window but not in all. `users` never changes, and
    // `orders` gets a full vacuum with fresh statistics before each window that inserts.
    ("autovacuum", "off"),
    // No statement of the contract is large enough for either; a wrong estimate must not change the plan in one window.
    // Parallel workers would also be the one user of large segments in /dev/shm, 64 MB in many containers.
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("max_parallel_maintenance_workers", "0"),
    // The same answers on every host.
    ("TimeZone", "UTC"),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    // A client's faulty statement is the client's matter and costs no write to the log: it also keeps the log small.
    ("log_min_messages", "log"),
    ("log_min_error_statement", "panic"),
    // What a person sees in a process list.
    ("cluster_name", "headroom"),
];

/// Arguments for `postgres`: `-c name=value` for each setting.
pub(super) fn arguments() -> impl Iterator<Item = String> {
    SETTINGS.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
}
