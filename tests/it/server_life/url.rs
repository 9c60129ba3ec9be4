//! Which database the server is told to use: odd characters in its URL, and faults named without the password.

use std::process::Output;

use super::Session;
use crate::served::{Served, command, through};
use crate::support::TestDatabase;

/// Every character that means something in a URL, a quoted SQL text or a shell.
const PASSWORD: &str = "p@ss:w/rd?#[%&=+ '\"\\$ü";

/// A role of the test's own. Roles belong to the whole cluster, so it goes with the test.
struct Role<'a> {
    name: String,
    database: &'a TestDatabase,
}

impl<'a> Role<'a> {
    fn new(database: &'a TestDatabase) -> Self {
        let (_, end) = database.url().rsplit_once('/').expect("a URL with a database");
        let name = format!("role_of_{}", end.split('?').next().expect("its name"));
        let password = PASSWORD.replace('\'', "''");
        let session = Session::connect(database.url());
        session.run("SET standard_conforming_strings = on");
        session.run(&format!("CREATE ROLE {name} LOGIN PASSWORD '{password}'"));
        session.run(&format!("GRANT SELECT ON users TO {name}"));
        session.run(&format!("GRANT INSERT, SELECT ON orders TO {name}"));
        Self { name, database }
    }

    /// The database's URL with this role and this text for its password.
    fn url(&self, password: &str) -> String {
        let (_, place) = self.database.url().split_once('@').expect("a URL with a user");
        format!("postgres://{}:{password}@{place}", self.name)
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let session = Session::connect(self.database.url());
        session.run(&format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name));
    }
}

fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// What a server that cannot start says: one line, none of `secrets` in it.
fn refusal(url: &str, store: &str, secrets: &[&str]) -> String {
    let Output { status, stdout, stderr } = command(url, &["--store", store]).output().expect("the binary runs");
    let said = String::from_utf8(stderr).expect("UTF-8");
    assert_eq!((status.code(), stdout.len()), (Some(2), 0), "{store}: {said}");
    assert_eq!(said.lines().count(), 1, "{store}: {said}");
    for secret in secrets {
        assert!(!said.contains(secret), "{store} shows {secret:?}: {said}");
    }
    said
}

#[test]
fn a_password_may_hold_any_character_when_it_is_escaped() {
    let database = TestDatabase::new();
    let role = Role::new(&database);
    for store in ["pipelined", "sqlx"] {
        let served = Served::start(&role.url(&escaped(PASSWORD)), &["--store", store, "--workers", "1"]);
        assert_eq!(served.wire().get("/users/4242").status, 200, "{store}");
    }
    for store in ["pipelined", "sqlx"] {
        let wrong = escaped("sesame@1");
        let said = refusal(&role.url(&wrong), store, &["sesame", "postgres://"]);
        assert!(said.contains("password authentication failed") && said.contains("DATABASE_URL"), "{store}: {said}");
    }
}

#[test]
fn a_url_that_cannot_be_used_is_explained_without_its_password() {
    for store in ["pipelined", "sqlx"] {
        for password in
            ["se/same", "se?same", "se#same", "se@same", "se%same", "se%zzsame", "se:same", "se[same", "12/same"]
        {
            let url = format!("postgres://user:{password}@127.0.0.1:1/none?sslmode=disable");
            let said = refusal(&url, store, &["same", "postgres://user"]);
            assert!(said.contains("DATABASE_URL"), "{store}: {said}");
        }
        for place in ["%2Fnowhere%2Fat%2Fall/none", "127.0.0.1:99999/none", "no.such.host.invalid/none", "127.0.0.1:1/"]
        {
            let said = refusal(&format!("postgres://user:sesame@{place}"), store, &["sesame"]);
            assert!(said.contains("DATABASE_URL"), "{store}: {said}");
        }
    }
}

#[test]
fn a_postgres_that_lets_too_few_connections_in_ends_the_server() {
    let database = TestDatabase::new();
    let role = Role::new(&database);
    Session::connect(database.url()).run(&format!("ALTER ROLE {} CONNECTION LIMIT 3", role.name));
    let url = role.url(&escaped(PASSWORD));
    for (workers, connections) in [("1", "10"), ("4", "10"), ("1", "4")] {
        let arguments = ["--workers", workers, "--connections", connections];
        // One that does not end by itself is ended.
        let output = through("timeout", &["20"], &command(&url, &arguments)).output().expect("the binary runs");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("too many connections") && said.contains("DATABASE_URL"), "{said}");
    }
    assert_eq!(Served::start(&url, &["--workers", "1", "--connections", "3"]).wire().get("/users/1").status, 200);
}
