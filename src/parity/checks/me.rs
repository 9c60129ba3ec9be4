//! `GET /me`: tokens that are good.

use crate::contract::{BENCH_SECRET, EXAMPLE_TOKEN, render_user, token};
use crate::dataset::user;
use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{Expect, not_found, ok, unauthorized};
use crate::parity::request::{Request, get};
use crate::parity::session::{Fault, Session, now_ms};
use crate::parity::values::Values;

const HEADER: &str = r#"{"alg":"HS256"}"#;

pub(super) fn checks(values: &Values, secret: &str) -> Vec<Check> {
    let id = values.users[0];
    let good = token::for_user(id, secret);
    let claims = |claims: &str| bearer(&token::hs256(HEADER, &format!(r#"{{"sub":"{id}",{claims}}}"#), secret));
    let now_s = now_ms() / 1000;
    let mut checks = vec![
        core("me-row-differs", "each token gets the row of its own user, byte for byte")
            .sends_all(values.users.map(|id| (bearer(&token::for_user(id, secret)), row(id)))),
        core("me-missing-user-not-404", "a good token of a user that does not exist is 404")
            .sends(bearer(&token::for_user(values.missing_user, secret)), not_found()),
        core("me-refuses-other-claims", "aud, iss, jti and unknown claims are ignored").sends(
            claims(r#""aud":["a","b"],"iss":"https://issuer.example","jti":"7","iat":1700000000,"admin":true"#),
            row(id),
        ),
        core("me-refuses-typ", "typ in the token's header is accepted").sends(
            bearer(&token::hs256(r#"{"typ":"JWT","alg":"HS256"}"#, &format!(r#"{{"sub":"{id}"}}"#), secret)),
            row(id),
        ),
        core("me-refuses-future-exp", "a token that has not expired is good")
            .sends(claims(&format!(r#""exp":{}"#, now_s + 3600)), row(id)),
        core("me-refuses-fractional-exp", "exp may have a fraction").sends(claims(r#""exp":4102444800.5"#), row(id)),
        core("me-caches-verification", "the signature is checked on every request, after a good one too").sends_all([
            (bearer(&good), row(id)),
            (bearer(&forged(&good)), unauthorized()),
            (bearer(&good), row(id)),
        ]),
        strict("me-refuses-past-nbf", "a token is good from its nbf on").sends(claims(r#""nbf":1700000000"#), row(id)),
        strict("me-scheme-case-sensitive", "the scheme is compared without case")
            .sends_all(["bearer", "BEARER", "bEaReR"].map(|scheme| (authorized(format!("{scheme} {good}")), row(id)))),
        strict("me-refuses-two-spaces", "several spaces after the scheme are accepted")
            .sends(authorized(format!("Bearer  {good}")), row(id)),
        strict("me-accepts-token-expired-in-use", "a token is refused once it has expired, used before or not")
            .runs(expires_in_use),
    ];
    if secret == BENCH_SECRET {
        checks.push(
            core("me-example-token-refused", "the published token of user 4242 is good")
                .sends(bearer(EXAMPLE_TOKEN), row(4242)),
        );
    }
    checks
}

/// `GET /me` with this token.
pub(super) fn bearer(token: &str) -> Request {
    authorized(format!("Bearer {token}"))
}

/// `GET /me` with this header.
pub(super) fn authorized(value: impl Into<Vec<u8>>) -> Request {
    get("/me").header("authorization", value)
}

/// The same header and payload under a signature with one bit changed.
pub(super) fn forged(token: &str) -> String {
    let start = token.rfind('.').expect("a token has dots") + 1;
    let first = if token.as_bytes()[start] == b'A' { "B" } else { "A" };
    format!("{}{first}{}", &token[..start], &token[start + 1..])
}

fn row(id: u32) -> Expect {
    ok(render_user(&user(id)))
}

/// Uses a token, waits until its second is over, and uses it again.
fn expires_in_use(session: &mut Session<'_>) -> Result<(), Fault> {
    let id = session.values.users[1];
    // At least half a second of life left, so that the first use is in time; at most one and a half to wait.
    let exp = (now_ms() + 500) / 1000 + 1;
    let request = bearer(&token::hs256(HEADER, &format!(r#"{{"sub":"{id}","exp":{exp}}}"#), &session.secret));
    session.exchange(&request, &row(id))?;
    let left = u64::try_from(exp * 1000 - now_ms()).unwrap_or_default();
    // A little more than needed: clocks of two processes may be read in either order.
    std::thread::sleep(std::time::Duration::from_millis(left + 20));
    session.exchange(&request, &unauthorized()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_token_differs_in_its_signature_alone() {
        let forged = forged(EXAMPLE_TOKEN);
        assert_ne!(forged, EXAMPLE_TOKEN);
        assert_eq!(
            forged.rsplit_once('.').map(|(signed, _)| signed),
            EXAMPLE_TOKEN.rsplit_once('.').map(|(signed, _)| signed)
        );
        assert_eq!(forged.len(), EXAMPLE_TOKEN.len());
    }
}
