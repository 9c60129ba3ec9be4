//! What is done to databases and counted in them, and which databases are left alone.

use headroom::dataset;
use headroom::interrupt::Interrupt;
use headroom::postgres::{Cluster, Database, StoredOrder, prepare, reset};
use headroom::progress::Silent;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::Home;
use crate::support::{TestDatabase, with_cluster};

/// Runs statements as any client would, on a connection that stays open with the value.
pub(super) struct Client {
    connection: Option<PgConnection>,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    pub(super) fn connect(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let connection = runtime.block_on(PgConnection::connect(url)).expect("the database lets a client in");
        Self { connection: Some(connection), runtime }
    }

    pub(super) fn run(&mut self, sql: &str) {
        let connection = self.connection.as_mut().expect("open while the value lives");
        self.runtime.block_on(sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection)).expect("the statements run");
    }

    fn text(&mut self, sql: &str) -> String {
        let connection = self.connection.as_mut().expect("open while the value lives");
        self.runtime.block_on(sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection)).expect("one text")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = self.runtime.block_on(connection.close());
        }
    }
}

/// One text from a database.
pub(super) fn text(url: &str, sql: &str) -> String {
    Client::connect(url).text(sql)
}

/// A database as a person has it: made of nothing, without marker. Dropped with the test database whose cluster it is in.
struct Plain {
    name: String,
    admin: String,
    url: String,
}

impl Plain {
    fn new(name: &str) -> Self {
        let main = with_cluster(|cluster| cluster.url().to_owned());
        let name = format!("plain_{}_{name}", std::process::id());
        let base = main.rsplit_once("/headroom?").expect("the main database's url").0.to_owned();
        let admin = format!("{base}/postgres?sslmode=disable");
        let mut client = Client::connect(&admin);
        client.run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        client.run(&format!("CREATE DATABASE {name}"));
        Self { url: format!("{base}/{name}?sslmode=disable"), name, admin }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        Client::connect(&self.admin).run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// Everything a statement could have changed in a small database, as text.
fn fingerprint(url: &str) -> String {
    let relations = text(
        url,
        "SELECT coalesce(string_agg(concat_ws(' ', n.nspname, c.relname, c.relkind, c.relfilenode), ',' ORDER BY c.oid), '')
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname NOT LIKE 'pg\\_%'",
    );
    let has_rows = text(url, "SELECT (to_regclass('someones') IS NOT NULL)::text");
    let rows = if has_rows == "true" {
        text(url, "SELECT coalesce(string_agg(x::text || xmin::text, ','), '') FROM someones")
    } else {
        String::new()
    };
    format!("{relations} {rows}")
}

#[test]
fn a_database_without_the_marker_is_refused_and_unchanged() {
    let plain = Plain::new("foreign");
    Client::connect(&plain.url).run("CREATE TABLE someones (x int); INSERT INTO someones VALUES (1), (2)");
    let before = fingerprint(&plain.url);
    let shown = format!("database {:?} on 127.0.0.1:", plain.name);

    let error = Database::connect(&plain.url).unwrap_err().to_string();
    assert!(error.contains(&shown) && error.contains("is not headroom's"), "{error}");
    assert!(error.contains("headroom postgres url"), "the remedy: {error}");
    let error = prepare(&plain.url, &Silent, &Interrupt::default()).unwrap_err().to_string();
    assert!(error.contains(&shown) && error.contains("nothing was changed"), "{error}");
    assert_eq!(fingerprint(&plain.url), before);

    // Another program's migrations, before their first table.
    Client::connect(&plain.url).run(
        "DROP TABLE someones; CREATE TABLE _sqlx_migrations (version bigint); INSERT INTO _sqlx_migrations VALUES (1)",
    );
    let before = fingerprint(&plain.url);
    prepare(&plain.url, &Silent, &Interrupt::default()).unwrap_err();
    assert_eq!(fingerprint(&plain.url), before);
    // A view, a sequence, a table in a schema of its own: somebody works here.
    for relation in ["VIEW v AS SELECT 1", "SEQUENCE s", "SCHEMA theirs CREATE TABLE t (x int)"] {
        Client::connect(&plain.url).run(&format!(
            "DROP TABLE IF EXISTS _sqlx_migrations; DROP VIEW IF EXISTS v; DROP SEQUENCE IF EXISTS s; CREATE {relation}"
        ));
        prepare(&plain.url, &Silent, &Interrupt::default()).expect_err(relation);
    }
}

#[test]
fn an_empty_database_can_be_prepared() {
    let plain = Plain::new("empty");
    let error = Database::connect(&plain.url).unwrap_err().to_string();
    assert!(error.contains("is empty: prepare it first"), "{error}");
    // What an interrupted preparation can leave is taken up again: the bare table of migrations, then the marker alone.
    Client::connect(&plain.url).run(
        "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL,
         installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL, checksum BYTEA NOT NULL,
         execution_time BIGINT NOT NULL)",
    );
    prepare(&plain.url, &Silent, &Interrupt::default()).unwrap();
    Client::connect(&plain.url).run("UPDATE headroom_marker SET seed = 'unfinished'; DELETE FROM orders WHERE id < 9");
    let error = Database::connect(&plain.url).unwrap_err().to_string();
    assert!(error.contains("never seeded to the end"), "{error}");
    prepare(&plain.url, &Silent, &Interrupt::default()).unwrap();
    assert_eq!(Database::connect(&plain.url).unwrap().order_count().unwrap(), 200_000);

    // A prepared one is checked and its orders reset.
    Client::connect(&plain.url).run("INSERT INTO orders (user_id, amount, currency) VALUES (1, 1, 'USD')");
    prepare(&plain.url, &Silent, &Interrupt::default()).unwrap();
    assert_eq!(Database::connect(&plain.url).unwrap().order_count().unwrap(), 200_000);
    Client::connect(&plain.url).run("UPDATE users SET age = age + 1 WHERE id = 77");
    let error = prepare(&plain.url, &Silent, &Interrupt::default()).unwrap_err().to_string();
    assert!(error.contains("is damaged (ages is 2375401, not 2375400)"), "{error}");
    Client::connect(&plain.url).run("UPDATE headroom_marker SET format = 99");
    let error = Database::connect(&plain.url).unwrap_err().to_string();
    assert!(error.contains("another version of headroom (format 99"), "{error}");
}

#[test]
fn the_rows_are_those_of_the_contract() {
    let database = TestDatabase::new();
    let mut client = Client::connect(database.url());
    assert_eq!(client.text("SELECT sum(age)::text FROM users"), "2375400");
    assert_eq!(client.text("SELECT sum(amount)::text FROM orders"), "49999000.00");
    assert_eq!(
        client.text(
            "SELECT string_agg(age::text, ' ' ORDER BY id) FROM users WHERE id IN (1, 121, 122, 123, 124, 4242, 50000)"
        ),
        "77 77 76 75 74 36 58"
    );
    // Rows as a whole, not only sums: written out from `dataset` and looked for in the tables.
    let users: Vec<String> = (1..=dataset::USERS)
        .step_by(997)
        .map(dataset::user)
        .map(|u| format!("({},'{}','{}',{},to_timestamp({}))", u.id, u.name, u.email, u.age, u.created_at_s))
        .collect();
    let rows = format!("SELECT * FROM (VALUES {}) v EXCEPT SELECT * FROM users", users.join(","));
    assert_eq!(client.text(&format!("SELECT count(*)::text FROM ({rows}) d")), "0");
    let orders: Vec<String> = (1..=dataset::ORDERS)
        .step_by(1_999)
        .map(dataset::order)
        .map(|o| {
            let amount = format!("{}.{:02}", o.amount_cents / 100, o.amount_cents % 100);
            format!("({},{},{amount},'{}'::char(3),to_timestamp({}))", o.id, o.user_id, o.currency, o.created_at_s)
        })
        .collect();
    let rows = format!("SELECT * FROM (VALUES {}) v EXCEPT SELECT * FROM orders", orders.join(","));
    assert_eq!(client.text(&format!("SELECT count(*)::text FROM ({rows}) d")), "0");

    let mut database = Database::connect(database.url()).unwrap();
    let order = |id, user_id, amount: &str, currency: &str, created_at_us| {
        Some(StoredOrder { id, user_id, amount: amount.into(), currency: currency.into(), created_at_us })
    };
    assert_eq!(database.order(1).unwrap(), order(1, 48_272, "196.21", "EUR", 1_710_000_005_000_000));
    assert_eq!(database.order(200_000).unwrap(), order(200_000, 1, "0.00", "GBP", 1_711_000_000_000_000));
    assert_eq!(database.order(200_001).unwrap(), None);
    assert_eq!(database.order(-1).unwrap(), None);
}

#[test]
fn a_reset_restores_orders_and_their_sequence() {
    let database = TestDatabase::new();
    let mut client = Client::connect(database.url());
    let insert = "INSERT INTO orders (user_id, amount, currency, created_at)
                  SELECT 4242, 19.99, 'USD', '2026-01-02T03:04:05.678Z' FROM generate_series(1, 50) RETURNING id::text";
    assert_eq!(client.text(insert), "200001");
    let mut ours = Database::connect(database.url()).unwrap();
    assert_eq!(ours.order_count().unwrap(), 200_050);
    let stored = ours.order(200_050).unwrap().unwrap();
    assert_eq!((stored.amount.as_str(), stored.created_at_us), ("19.99", 1_767_323_045_678_000));
    ours.reset_orders().unwrap();
    assert_eq!(ours.order_count().unwrap(), 200_000);
    assert_eq!(client.text(insert), "200001", "the sequence begins anew");

    // What a reset cannot bring back is said.
    client.run("DELETE FROM orders WHERE id = 7");
    let error = ours.reset_orders().unwrap_err().to_string();
    assert!(error.contains("199999 of the 200000 seeded orders"), "{error}");
}

#[test]
fn sessions_and_transactions_are_counted() {
    let database = TestDatabase::new();
    let mut ours = Database::connect(database.url()).unwrap();
    let mut also_ours = Database::connect(database.url()).unwrap();
    assert_eq!(ours.client_backends().unwrap(), 0, "the harness's own sessions are not counted");
    let before = ours.transactions().unwrap();

    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(database.url())).collect();
    assert_eq!(ours.client_backends().unwrap(), 3);
    assert_eq!(also_ours.client_backends().unwrap(), 3);
    for client in &mut clients {
        for _ in 0..7 {
            client.run("SELECT 1");
        }
    }
    // Reading the counts adds nothing to them.
    for _ in 0..5 {
        also_ours.order_count().unwrap();
        also_ours.settings().unwrap();
    }
    drop(clients);
    let added = ours.transactions().unwrap() - before;
    assert_eq!(added, 3 * (7 + 1), "one for each statement and one for each login, none for looking");
}

#[test]
fn a_session_that_stays_is_waited_for_and_then_named() {
    let database = TestDatabase::new();
    let mut ours = Database::connect(database.url()).unwrap();
    let client = Client::connect(database.url());
    // It leaves while the count waits.
    std::thread::scope(|scope| {
        let count = scope.spawn(|| ours.transactions());
        drop(client);
        count.join().unwrap().unwrap();
    });
    let _client = Client::connect(database.url());
    let error = ours.transactions().unwrap_err().to_string();
    assert!(error.contains("1 other sessions are still connected"), "{error}");
}

#[test]
fn a_checkpoint_is_counted_once_it_is_done() {
    let home = Home::take();
    let cluster = home.acquire();
    let mut database = Database::connect(cluster.url()).unwrap();
    // The count is published a moment after the answer: often enough to see it missed.
    for _ in 0..40 {
        let before = database.checkpoints().unwrap();
        database.checkpoint().unwrap();
        let after = database.checkpoints().unwrap();
        assert!(after > before);
        assert_eq!(database.checkpoints().unwrap(), after, "nothing of it is counted later");
    }
}

#[test]
fn the_server_is_described() {
    let (url, version) = with_cluster(|cluster| (cluster.url().to_owned(), cluster.version().to_owned()));
    let mut database = Database::connect(&url).unwrap();
    assert_eq!(database.version().unwrap(), version);
    assert!(version.starts_with(|first: char| first.is_ascii_digit()));
    let pid = database.postmaster_pid().unwrap().unwrap();
    assert_eq!(pid, super::postmaster(&crate::support::test_home()));

    let settings = database.settings().unwrap();
    let value = |name: &str| settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str());
    for (name, wanted) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("autovacuum", "off"),
        ("shared_buffers", "256MB"),
        ("checkpoint_timeout", "1h"),
        ("max_wal_size", "8GB"),
        ("listen_addresses", "127.0.0.1"),
        ("jit", "off"),
    ] {
        assert_eq!(value(name), Some(wanted), "{name}");
    }
    for place in ["data_directory", "port", "application_name", "config_file"] {
        assert_eq!(value(place), None, "{place}");
    }
}

#[test]
fn a_password_is_understood_and_never_shown() {
    let database = TestDatabase::new();
    let place = database.url().split_once('@').unwrap().1;
    let role = format!("o'dd {}", std::process::id());
    let mut client = Client::connect(database.url());
    client.run(&format!("DROP ROLE IF EXISTS \"{role}\"; CREATE ROLE \"{role}\" LOGIN PASSWORD 'p@ss/w#r?d:%41 ''ü'"));
    client.run(&format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO \"{role}\""));
    let name = role.replace(' ', "%20").replace('\'', "%27");
    let password = "p%40ss%2Fw%23r%3Fd%3A%2541%20%27%C3%BC";

    let mut ours = Database::connect(&format!("postgres://{name}:{password}@{place}")).unwrap();
    assert_eq!(ours.order_count().unwrap(), 200_000);
    let error = format!("{:#}", ours.checkpoint().unwrap_err());
    assert!(error.contains("pg_checkpoint"), "{error}");
    drop(ours);

    let refused = |url: String| {
        let error = format!("{:#}", Database::connect(&url).unwrap_err());
        assert!(!error.contains("hunter2") && !error.contains("ss/w") && !error.contains('\n'), "{error}");
        error
    };
    let error = refused(format!("postgres://{name}:hunter2@{place}"));
    assert!(error.contains("password authentication failed") && error.contains("check the user"), "{error}");
    let error = refused(format!("postgres://{name}:hunter2/x@{place}"));
    assert!(error.contains("percent-encoded"), "{error}");
    let missing = place.replace("/test_", "/missing_");
    let error = refused(format!("postgres://{name}:{password}@{missing}"));
    assert!(error.contains("create it first"), "{error}");
    let error = refused("postgres://u:hunter2@127.0.0.1:1/db".to_owned());
    assert!(error.contains("127.0.0.1:1") && error.contains("is postgres running"), "{error}");
    let error = refused("postgres://u:hunter2@nowhere.invalid/db".to_owned());
    assert!(error.contains("nowhere.invalid:5432"), "{error}");

    client.run(&format!("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM \"{role}\"; DROP ROLE \"{role}\""));
}

#[test]
fn something_else_on_the_port_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let error = Database::connect(&format!("postgres://u:hunter2@127.0.0.1:{port}/db?sslmode=disable")).unwrap_err();
    let error = error.to_string();
    assert!(error.contains(&format!("127.0.0.1:{port}")) && !error.contains("hunter2"), "{error}");
    other.join().unwrap();
}

#[test]
fn a_damaged_main_database_is_made_anew() {
    let home = Home::take();
    for damage in [
        "UPDATE orders SET amount = amount + 1 WHERE id = 5",
        "UPDATE users SET email = 'x' WHERE id = 3",
        "DROP INDEX orders_user_id_idx",
        "DROP TABLE headroom_marker",
        "DROP TABLE orders",
    ] {
        let cluster = home.acquire();
        assert_eq!(Database::connect(cluster.url()).unwrap().order_count().unwrap(), 200_000);
        Client::connect(cluster.url()).run(damage);
        let error = Cluster::acquire(&home.options(), &Silent, &Interrupt::default()).map(drop).expect_err(damage);
        let error = error.to_string();
        assert!(error.contains("must be made anew") && error.contains("1 others use it"), "{damage}: {error}");
    }
    let again = home.acquire();
    assert_eq!(Database::connect(again.url()).unwrap().order_count().unwrap(), 200_000);

    // What a run inserted is no damage, and what somebody left temporarily is gone.
    Client::connect(again.url()).run("INSERT INTO orders (user_id, amount, currency) VALUES (1, 1, 'USD')");
    again.create_database("left_behind").unwrap();
    let error = again.create_database("headroom_seed").unwrap_err().to_string();
    assert!(error.contains("one of the cluster's own"), "{error}");
    drop(again);
    let again = home.acquire();
    assert_eq!(Database::connect(again.url()).unwrap().order_count().unwrap(), 200_001);
    let left = text(again.url(), "SELECT count(*)::text FROM pg_database WHERE datname = 'left_behind'");
    assert_eq!(left, "0");
    // By hand, it is made anew whatever is in it; not under somebody who uses it.
    let error = reset(&home.options(), &Silent, &Interrupt::default()).unwrap_err().to_string();
    assert!(error.contains("1 others use it"), "{error}");
    drop(again);
    reset(&home.options(), &Silent, &Interrupt::default()).unwrap();
    let again = home.acquire();
    assert_eq!(Database::connect(again.url()).unwrap().order_count().unwrap(), 200_000);
}
