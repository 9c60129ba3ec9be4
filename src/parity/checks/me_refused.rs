//! `GET /me`: everything that is 401, always with the same body.

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Sha384, Sha512};

use super::me::{authorized, bearer, forged};
use crate::contract::token::{for_user, hs256};
use crate::dataset::USERS;
use crate::parity::check::{Check, core, strict};
use crate::parity::expect::unauthorized;
use crate::parity::request::{Request, get};
use crate::parity::session::now_ms;
use crate::parity::values::Values;

const HEADER: &str = r#"{"alg":"HS256"}"#;

/// Payloads under a good signature: id, what it proves, payload.
const PAYLOADS: &[(&str, &str, &str)] = &[
    ("me-accepts-missing-sub", "a token without sub is 401", r#"{"iat":0}"#),
    ("me-accepts-numeric-sub", "sub is a string, not a number", r#"{"sub":4242,"iat":0}"#),
    ("me-accepts-null-sub", "sub is a string, not null", r#"{"sub":null}"#),
    ("me-accepts-sub-letters", "a sub that is no id is 401", r#"{"sub":"abc"}"#),
    ("me-accepts-sub-zero", "sub 0 is no id", r#"{"sub":"0"}"#),
    ("me-accepts-sub-negative", "sub -1 is no id", r#"{"sub":"-1"}"#),
    (
        "me-accepts-sub-int4-overflow",
        "sub 2147483648 is no id, and no error of the database",
        r#"{"sub":"2147483648"}"#,
    ),
    ("me-accepts-empty-sub", "an empty sub is no id", r#"{"sub":""}"#),
    ("me-accepts-string-exp", "exp is a number", r#"{"sub":"4242","exp":"4102444800"}"#),
    ("me-accepts-boolean-exp", "exp is a number, not true", r#"{"sub":"4242","exp":true}"#),
    ("me-accepts-expired", "a token that expired in 2001 is 401", r#"{"sub":"4242","exp":1000000000}"#),
];

/// As above, where the pattern is written by hand.
const STRICT_PAYLOADS: &[(&str, &str, &str)] = &[
    ("me-accepts-sub-leading-zero", "sub is in the strict form of an id: no leading zero", r#"{"sub":"04242"}"#),
    ("me-accepts-sub-plus", "sub is in the strict form of an id: no sign", r#"{"sub":"+4242"}"#),
    ("me-accepts-sub-space", "sub is in the strict form of an id: no space", r#"{"sub":" 4242"}"#),
    ("me-accepts-sub-exponent", "sub is in the strict form of an id: no exponent", r#"{"sub":"1e3"}"#),
    ("me-accepts-sub-array", "sub is a string, not an array", r#"{"sub":["4242"]}"#),
    ("me-accepts-null-exp", "exp is a number where it is present", r#"{"sub":"4242","exp":null}"#),
    ("me-accepts-future-nbf", "a token is 401 before its nbf", r#"{"sub":"4242","nbf":4102444800}"#),
    ("me-accepts-string-nbf", "nbf is a number where it is present", r#"{"sub":"4242","nbf":"0"}"#),
    ("me-accepts-payload-array", "a payload that is no object is 401", r#"["4242"]"#),
    ("me-accepts-payload-text", "a payload that is no JSON is 401", "4242 forever"),
];

/// Headers under a HS256 signature by the right secret: id, what it proves, header.
const HEADERS: &[(&str, &str, &str)] = &[
    ("me-accepts-alg-none-signed", "alg none is 401, under a signature too", r#"{"alg":"none"}"#),
    ("me-accepts-other-alg-named", "a header that names RS256 is 401", r#"{"alg":"RS256"}"#),
    ("me-accepts-missing-alg", "a header without alg is 401", r#"{"typ":"JWT"}"#),
];

pub(super) fn checks(values: &Values, secret: &str) -> Vec<Check> {
    let id = values.users[2];
    let payload = format!(r#"{{"sub":"{id}","iat":0}}"#);
    let good = for_user(id, secret);
    let (signed, signature) = good.rsplit_once('.').expect("a token has dots");
    let other = for_user(values.users[3], secret);
    let other_signed = other.rsplit_once('.').expect("a token has dots").0;
    let unsigned = |header: &str| format!("{}.{}.", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(&payload));
    let minutes_ago = now_ms() / 1000 - 300;

    let mut checks: Vec<Check> = vec![
        refused("me-accepts-no-header", "a request without authorization is 401", get("/me")),
        refused("me-accepts-basic-scheme", "another scheme is 401", authorized("Basic dXNlcjpwYXNz")),
        refused(
            "me-accepts-token-of-other-scheme",
            "a good token under another scheme is 401",
            authorized(format!("Token {good}")),
        ),
        refused("me-accepts-bare-token", "a good token without a scheme is 401", authorized(good.clone())),
        refused("me-accepts-scheme-alone", "a scheme without a token is 401", authorized("Bearer")),
        refused("me-accepts-no-jwt", "words are no token", bearer("not-a-token")),
        refused("me-accepts-two-parts", "a token without its signature is 401", bearer(signed)),
        refused("me-accepts-random-parts", "three parts that are no JSON are no token", bearer("abc.def.ghi")),
        refused("me-accepts-wrong-signature", "a signature with one character changed is 401", bearer(&forged(&good))),
        refused(
            "me-accepts-other-secret",
            "a token signed with another secret is 401",
            bearer(&for_user(id, "another secret")),
        ),
        refused("me-accepts-empty-secret", "a token signed with an empty secret is 401", bearer(&for_user(id, ""))),
        refused(
            "me-accepts-swapped-payload",
            "the payload of one token under the signature of another is 401",
            bearer(&format!("{other_signed}.{signature}")),
        ),
        refused("me-accepts-alg-none", "alg none without a signature is 401", bearer(&unsigned(r#"{"alg":"none"}"#))),
        refused(
            "me-accepts-alg-none-with-signature",
            "alg none under the signature of a good token is 401",
            bearer(&format!("{}{signature}", unsigned(r#"{"alg":"none"}"#))),
        ),
        refused("me-accepts-empty-signature", "HS256 without a signature is 401", bearer(&unsigned(HEADER))),
        refused("me-accepts-hs384", "HS384 with the right secret is 401", bearer(&hs384(&payload, secret))),
        refused("me-accepts-hs512", "HS512 with the right secret is 401", bearer(&hs512(&payload, secret))),
        refused(
            "me-accepts-recently-expired",
            "a token that expired five minutes ago is 401",
            bearer(&hs256(HEADER, &format!(r#"{{"sub":"{id}","exp":{minutes_ago}}}"#), secret)),
        ),
    ];
    checks.extend(
        HEADERS.iter().map(|(id, proves, header)| refused(id, proves, bearer(&hs256(header, &payload, secret)))),
    );
    checks.extend(PAYLOADS.iter().map(|(id, proves, text)| refused(id, proves, bearer(&hs256(HEADER, text, secret)))));
    checks.extend(
        STRICT_PAYLOADS
            .iter()
            .map(|(id, proves, text)| strictly_refused(id, proves, bearer(&hs256(HEADER, text, secret)))),
    );
    checks.extend(strict_encodings(&good, id, secret));
    checks
}

fn strict_encodings(good: &str, id: u32, secret: &str) -> Vec<Check> {
    let payload = format!(r#"{{"sub":"{id}","iat":0}}"#);
    let second_ago = now_ms() / 1000 - 1;
    // Encoded with padding and signed as encoded: only the form is wrong, not the signature.
    let padded_parts =
        signed_text(&format!("{}.{}", URL_SAFE.encode(r#"{"alg":"HS256"} "#), URL_SAFE.encode(&payload)), secret);
    let (first, rest) = good.split_at(10);
    vec![
        strictly_refused("me-accepts-padded-signature", "padded base64 is 401", bearer(&format!("{good}="))),
        strictly_refused(
            "me-accepts-padded-parts",
            "padded base64 is 401, under a good signature too",
            bearer(&padded_parts),
        ),
        strictly_refused(
            "me-accepts-standard-alphabet",
            "base64 with + and / is 401",
            bearer(&standard_alphabet(id, secret)),
        ),
        strictly_refused(
            "me-accepts-loose-last-bits",
            "a last character with loose bits is 401",
            bearer(&loose_bits(good)),
        ),
        strictly_refused(
            "me-accepts-space-in-token",
            "a space inside the token is 401",
            bearer(&format!("{first} {rest}")),
        ),
        strictly_refused(
            "me-accepts-tab-in-token",
            "a tab inside the token is 401",
            bearer(&format!("{first}\t{rest}")),
        ),
        strictly_refused("me-accepts-word-after-token", "a word after the token is 401", bearer(&format!("{good} x"))),
        strictly_refused("me-accepts-fourth-part", "a fourth part is 401", bearer(&format!("{good}.x"))),
        strictly_refused("me-accepts-empty-header", "an empty authorization is 401", authorized("")),
        strictly_refused(
            "me-ignores-case-of-token",
            "the token is compared with its case",
            bearer(&good.to_lowercase()),
        ),
        strictly_refused(
            "me-allows-leeway",
            "a token that expired a second ago is 401: leeway is 0",
            bearer(&hs256(HEADER, &format!(r#"{{"sub":"{id}","exp":{second_ago}}}"#), secret)),
        ),
    ]
}

fn refused(id: &'static str, proves: &'static str, request: Request) -> Check {
    core(id, proves).sends(request, unauthorized())
}

fn strictly_refused(id: &'static str, proves: &'static str, request: Request) -> Check {
    strict(id, proves).sends(request, unauthorized())
}

fn hs384(payload: &str, secret: &str) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS384"}"#), URL_SAFE_NO_PAD.encode(payload));
    let mut mac = Hmac::<Sha384>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

fn hs512(payload: &str, secret: &str) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS512"}"#), URL_SAFE_NO_PAD.encode(payload));
    let mut mac = Hmac::<Sha512>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

/// Any `header.payload` text under its HS256 signature.
fn signed_text(signed: &str, secret: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

/// A good token whose signature has letters that the other alphabet writes as `+` and `/`, written so, without padding:
/// every fourth signature has none of them, so users are tried from this one on.
fn standard_alphabet(id: u32, secret: &str) -> String {
    let tokens = (1..=id).rev().chain(id..=USERS).map(|id| for_user(id, secret));
    let differs = |token: &String| token.rsplit_once('.').is_some_and(|(_, signature)| signature.contains(['-', '_']));
    let token = tokens.into_iter().find(differs).expect("of 50,000 signatures one has such a letter");
    let (signed, signature) = token.rsplit_once('.').expect("a token has dots");
    format!("{signed}.{}", signature.replace('-', "+").replace('_', "/"))
}

/// 32 bytes take 43 characters, and the last two bits of the last one mean nothing: sets one of them.
fn loose_bits(token: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (rest, last) = token.split_at(token.len() - 1);
    let index = ALPHABET.iter().position(|byte| last.as_bytes()[0] == *byte).expect("made by our own encoder");
    format!("{rest}{}", char::from(ALPHABET[index | 1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{BENCH_SECRET, EXAMPLE_TOKEN};

    #[test]
    fn loose_bits_change_the_text_and_not_the_bytes() {
        let loose = loose_bits(EXAMPLE_TOKEN);
        assert_ne!(loose, EXAMPLE_TOKEN);
        let lenient = base64::engine::GeneralPurpose::new(
            &base64::alphabet::URL_SAFE,
            base64::engine::general_purpose::NO_PAD.with_decode_allow_trailing_bits(true),
        );
        let signature = |token: &str| lenient.decode(token.rsplit_once('.').unwrap().1).unwrap();
        assert_eq!(signature(&loose), signature(EXAMPLE_TOKEN));
    }

    #[test]
    fn a_text_is_signed_like_a_token() {
        let signed = EXAMPLE_TOKEN.rsplit_once('.').unwrap().0;
        assert_eq!(signed_text(signed, BENCH_SECRET), EXAMPLE_TOKEN);
    }
}
