//! What several areas of the tests share.
//!
//! One private cluster for all test processes, in a state folder of its own: joined by the first test that needs it,
//! stopped and removed by the last process out. Each test takes a database of its own, so tests run side by side.

// Each area takes what it needs of this.
#![allow(dead_code, reason = "not every area uses every helper")]

use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use headroom::interrupt::Interrupt;
use headroom::peer;
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

/// Where a test that runs itself as another user has put a Postgres that this user can reach.
pub(crate) const REACHABLE_POSTGRES: &str = "HEADROOM_TEST_POSTGRES";

/// The pinned Postgres, installed with the peers: a machine may have no other.
pub(crate) fn pinned_postgres() -> Option<PathBuf> {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    if let Some(reachable) = std::env::var_os(REACHABLE_POSTGRES) {
        return Some(PathBuf::from(reachable));
    }
    INSTALLED.get_or_init(|| peer::install(&bench(), &Silent, &Interrupt::default()).expect("the peers are installed"));
    peer::pinned_postgres(&bench())
}

/// State folder of the cluster that the test processes of this checkout share: another checkout may pin another Postgres.
/// Under `/var/tmp`, which the user Postgres runs as can reach where root tests.
pub(crate) fn test_home() -> PathBuf {
    let mut checkout = std::hash::DefaultHasher::new();
    env!("CARGO_MANIFEST_DIR").hash(&mut checkout);
    let checkout = checkout.finish() >> u32::BITS;
    PathBuf::from(format!("/var/tmp/headroom-test-{}-{checkout:08x}", nix::unistd::geteuid()))
}

/// Options for a cluster in `home`.
pub(crate) fn cluster_options(home: &Path) -> ClusterOptions {
    ClusterOptions { home: home.to_owned(), binaries: None, pinned: pinned_postgres(), keep: false }
}

/// This process's share in the tests' cluster, given back when it exits.
static SHARED: Mutex<Option<Cluster>> = Mutex::new(None);

/// Does something with the shared cluster, which is started by the first who asks.
pub(crate) fn with_cluster<T>(act: impl FnOnce(&Cluster) -> T) -> T {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let cluster = shared.get_or_insert_with(|| {
        let options = cluster_options(&test_home());
        Cluster::acquire(&options, &Silent, &Interrupt::default()).expect("the shared cluster starts")
    });
    act(cluster)
}

/// Statics are not dropped, so the share is given back here; the last process out also removes the folder.
#[dtor::dtor(unsafe)]
fn give_back() {
    let Some(cluster) = SHARED.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    // On a thread of its own: the main thread's thread-locals are gone by now.
    let leaving = std::thread::spawn(move || {
        let left = cluster.leave();
        if left.is_ok() && headroom::postgres::url(&test_home()).is_err() {
            let _ = std::fs::remove_dir_all(test_home());
        }
    });
    let _ = leaving.join();
}

/// A seeded and marked database of the test's own, dropped at its end.
pub(crate) struct TestDatabase {
    name: String,
    url: String,
}

impl TestDatabase {
    /// Copies the seed: some 0.2 s.
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Another process with this id may have been killed and left its database behind.
        let since_epoch = std::time::UNIX_EPOCH.elapsed().expect("the clock is past 1970");
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{}_{number}", std::process::id(), since_epoch.as_millis());
        let created = with_cluster(|cluster| cluster.create_database(&name));
        Self { url: created.expect("a database is copied from the seed"), name }
    }

    /// As a server takes it in `DATABASE_URL`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let _ = with_cluster(|cluster| cluster.drop_database(&self.name));
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
