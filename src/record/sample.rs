//! A made-up record for tests: every kind of row a report has to cope with can be built from it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use super::{
    Cores, CpuPerRequest, Gate, Latency, Life, Limits, Postgres, Record, Run, SCHEMA, Server, Settings, Window,
};

/// 2026-01-02T03:04:05Z plus some seconds.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_323_045 + seconds).unwrap()
}

/// One of ours, on one core.
pub(crate) fn native(name: &str, driver: &str, cores: Cores) -> Server {
    Server {
        name: name.to_owned(),
        label: format!("axum, {driver}"),
        class: "reference".to_owned(),
        native: true,
        runtime: "native".to_owned(),
        framework: "axum".to_owned(),
        driver: driver.to_owned(),
        prepared: true,
        pipelined: driver != "sqlx",
        cores,
        processes: 1,
        versions: BTreeMap::from([("headroom".to_owned(), "0.1.0".to_owned())]),
    }
}

/// A peer, one process.
pub(crate) fn peer(name: &str, runtime: &str, framework: &str, driver: &str) -> Server {
    Server {
        name: name.to_owned(),
        label: format!("{framework} on {runtime}, {driver}"),
        class: "idiomatic".to_owned(),
        native: false,
        runtime: runtime.to_owned(),
        framework: framework.to_owned(),
        driver: driver.to_owned(),
        prepared: true,
        pipelined: true,
        cores: Cores::One,
        processes: 1,
        versions: BTreeMap::from([
            (runtime.to_owned(), "1.4.2".to_owned()),
            (framework.to_owned(), "1.4.30".to_owned()),
        ]),
    }
}

/// `run.json` of these servers and routes.
pub(crate) fn run(servers: Vec<Server>, routes: &[&str], profile: &str, rounds: u32) -> Run {
    let passed =
        Gate { passed: true, checks: 113, core_failures: Vec::new(), strict_differences: Vec::new(), error: None };
    Run {
        schema: SCHEMA,
        started_at: at(0),
        resumed_at: Vec::new(),
        headroom_version: "0.1.0".to_owned(),
        git_commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
        debug_build: false,
        gates: servers.iter().map(|server| (server.name.clone(), passed.clone())).collect(),
        settings: Settings {
            profile: profile.to_owned(),
            suite: None,
            routes: routes.iter().map(|&route| route.to_owned()).collect(),
            connections: vec![100],
            rounds,
            warmup_s: 2.0,
            first_warmup_s: 2.0,
            window_s: 4.0,
            pause_s: 0.2,
            max_attempts: 2,
            driver_threads: 1,
            seed: Some(1),
            check_every: 100,
            limits: Limits { max_foreign_cpu_share: 0.05, max_steal_share: 0.02, max_postgres_connections: 10 },
            steps: Vec::new(),
        },
        servers,
        host: json!({"cpu_model": "Example CPU", "cpus_allowed": 2, "kernel": "6.1.0", "memory_bytes": 8_589_934_592_u64}),
        postgres: Postgres {
            version: "17.10".to_owned(),
            settings: BTreeMap::from([("shared_buffers".to_owned(), "256MB".to_owned())]),
            visible: true,
        },
    }
}

/// A valid window at 100 connections whose other figures follow from its rate.
pub(crate) fn window(server: &str, route: &str, round: u32, requests_per_s: f64) -> Window {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test figures are small and positive")]
    let whole = |value: f64| value as u64;
    let mean = whole(100.0 / requests_per_s * 1e9);
    Window {
        schema: SCHEMA,
        started_at: at(i64::from(round) * 100),
        server: server.to_owned(),
        route: route.to_owned(),
        connections: 100,
        round,
        attempt: 1,
        life: round,
        valid: true,
        invalid_reasons: Vec::new(),
        window_s: Some(4.0),
        requests_ok: whole(requests_per_s * 4.0),
        requests_per_s: Some(requests_per_s),
        ok_per_second: vec![whole(requests_per_s); 4],
        drained: 0,
        latency_ns: Latency {
            min: Some(mean / 10),
            mean: Some(mean),
            p50: Some(mean),
            p90: Some(mean * 3 / 2),
            p99: Some(mean * 2),
            p99_9: Some(mean * 3),
            max: Some(mean * 4),
        },
        cpu_ns_per_request: CpuPerRequest {
            server: Some(whole(600_000_000.0 / requests_per_s)),
            postgres: Some(whole(700_000_000.0 / requests_per_s)),
            driver: Some(7_000),
        },
        rss_bytes: Some(50 << 20),
        peak_rss_bytes: Some(64 << 20),
        errors: BTreeMap::new(),
        statuses: BTreeMap::new(),
        first_failure: None,
        bodies_checked: whole(requests_per_s / 25.0),
        bytes_read: whole(requests_per_s * 4.0) * 200,
        bytes_written: whole(requests_per_s * 4.0) * 60,
        unfinished: 0,
        unfinished_oldest_ns: None,
        connections_open: 100,
        connections_lost: 0,
        connections_never_served: 0,
        reconnects: 0,
        closed_by_server: 0,
        driver_busy_share: Some(0.6),
        foreign_cpu_share: Some(0.012),
        steal_share: Some(0.0),
        host_idle_share: Some(0.03),
        postgres_connections: Some(10),
    }
}

/// A life that ended as it should.
pub(crate) fn life(server: &str, round: u32, life: u32) -> Life {
    Life {
        schema: SCHEMA,
        life,
        server: server.to_owned(),
        round,
        started_at: at(0),
        ready_ns: Some(150_000_000),
        idle_rss_bytes: Some(30 << 20),
        database_requests_ok: 1_000,
        transactions: Some(1_050),
        postgres_connections: Some(10),
        voids: Vec::new(),
        failure: None,
    }
}

/// A record without a torn line.
pub(crate) fn record(run: Run, windows: Vec<Window>, lives: Vec<Life>) -> Record {
    Record { run, windows, lives, torn: false }
}
