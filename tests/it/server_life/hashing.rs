//! The `cpu` route at full tilt, and its limits.

use crate::served::Served;
use crate::support::TestDatabase;
use crate::wire::Wire;

const HASH_OF_2000: &str = "0a33a6512f662115a0dad9f48967ae256d1de9512f321855db9bc58f71da015b";

#[test]
fn hashing_at_full_tilt_holds_up_nobody_else() {
    let database = TestDatabase::new();
    let served = Served::start(database.url(), &["--workers", "1"]);
    let mut hashing: Vec<Wire> = (0..64).map(|_| served.wire()).collect();
    for wire in &mut hashing {
        wire.send("GET /cpu?n=2000 HTTP/1.1\r\nhost: test\r\n\r\n");
    }
    let mut other = served.wire();
    assert_eq!(other.get("/health").status, 200);
    assert!(hashing.last_mut().unwrap().is_silent(), "it was overtaken");
    for wire in &mut hashing {
        assert_eq!(other.get("/health").status, 200);
        assert_eq!(other.get("/users/1").status, 200);
        assert_eq!(wire.reply().body, format!(r#"{{"n":2000,"hash":"{HASH_OF_2000}"}}"#));
    }
}

#[test]
fn rounds_have_limits() {
    let database = TestDatabase::new();
    for front in ["own", "axum"] {
        let served = Served::start(database.url(), &["--workers", "1", "--http", front]);
        let mut wire = served.wire();
        for query in ["?n=0", "?n=-1", "?n=abc", "?n=1e9", "?n=1000001", "?n=1000000000", "?n=", "?n=1&n=2", "?", ""] {
            let reply = wire.get(&format!("/cpu{query}"));
            assert_eq!(
                (reply.status, reply.header("content-type")),
                (422, Some("application/problem+json")),
                "{query}"
            );
        }
        assert_eq!(wire.get("/cpu?n=1").status, 200);
    }
}
