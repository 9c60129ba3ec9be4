//! `authorization: Bearer <jwt>`: HS256, checked on every request, nothing remembered.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::{Deserialize, Deserializer};

use super::error::ApiError;
use super::parameter;

/// Verifies tokens with one key and one set of rules, built once.
pub(super) struct Verifier {
    key: DecodingKey,
    rules: Validation,
}

/// The claims that count; `aud`, `iss`, `jti` and `iat` are ignored.
#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default, deserialize_with = "number")]
    exp: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    nbf: Option<f64>,
}

/// A claim that is there must be a number; `null` is not one.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(Some)
}

impl Verifier {
    /// For tokens signed with `secret`.
    pub(super) fn new(secret: &str) -> Self {
        let mut rules = Validation::new(Algorithm::HS256);
        // Times are checked here: the library rounds the clock and lets the second of expiry pass.
        rules.validate_exp = false;
        rules.validate_nbf = false;
        rules.validate_aud = false;
        rules.required_spec_claims.clear();
        let key = DecodingKey::from_secret(secret.as_bytes()).expect("an empty secret has been refused");
        Self { key, rules }
    }

    /// The user a request with this one `authorization` speaks for; every fault is the same 401.
    pub(super) fn user(&self, authorization: Option<&str>) -> Result<i32, ApiError> {
        authorization.and_then(|value| self.subject(value, now_s())).ok_or(ApiError::Unauthorized)
    }

    fn subject(&self, authorization: &str, now_s: f64) -> Option<i32> {
        let token = bearer(authorization)?;
        let claims = jsonwebtoken::decode::<Claims>(token, &self.key, &self.rules).ok()?.claims;
        let expired = claims.exp.is_some_and(|exp| exp <= now_s);
        let early = claims.nbf.is_some_and(|nbf| nbf > now_s);
        if expired || early { None } else { parameter::id(&claims.sub) }
    }
}

/// The token of `Bearer <token>`; the scheme in any case, one or more spaces between (RFC 9110, section 11.4).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim_start_matches(' '))
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::{Value, json};

    const NOW_S: f64 = 1_800_000_000.25;

    fn verified(algorithm: Algorithm, claims: &Value) -> Option<i32> {
        let header = Header::new(algorithm);
        let token = encode(&header, claims, &EncodingKey::from_secret(b"key").expect("a key")).expect("a token");
        authorized(&format!("Bearer {token}"))
    }

    fn authorized(value: &str) -> Option<i32> {
        Verifier::new("key").subject(value, NOW_S)
    }

    #[test]
    fn times_are_exact_and_without_leeway() {
        let with = |claims| verified(Algorithm::HS256, &claims);
        assert_eq!(with(json!({"sub": "7"})), Some(7));
        assert_eq!(with(json!({"sub": "7", "exp": 1_800_000_001})), Some(7));
        assert_eq!(with(json!({"sub": "7", "exp": NOW_S})), None);
        assert_eq!(with(json!({"sub": "7", "exp": 1_800_000_000})), None);
        assert_eq!(with(json!({"sub": "7", "exp": 4_102_444_800.5})), Some(7));
        assert_eq!(with(json!({"sub": "7", "nbf": 1_800_000_000})), Some(7));
        assert_eq!(with(json!({"sub": "7", "nbf": 1_800_000_001})), None);
        for wrong in [json!("4102444800"), json!(null), json!([]), json!(true)] {
            assert_eq!(with(json!({"sub": "7", "exp": wrong})), None, "exp {wrong}");
            assert_eq!(with(json!({"sub": "7", "nbf": wrong})), None, "nbf {wrong}");
        }
        assert_eq!(with(json!({"sub": "7", "aud": "x", "iss": 3, "jti": [], "iat": "x"})), Some(7));
    }

    #[test]
    fn the_subject_is_an_id_in_strict_form() {
        for sub in
            [json!(7), json!(""), json!("0"), json!("07"), json!("+7"), json!("2147483648"), json!("a"), json!(null)]
        {
            assert_eq!(verified(Algorithm::HS256, &json!({"sub": sub})), None, "sub {sub}");
        }
        assert_eq!(verified(Algorithm::HS256, &json!({"exp": 4_102_444_800_u64})), None);
        assert_eq!(verified(Algorithm::HS256, &json!({"sub": "2147483647"})), Some(i32::MAX));
    }

    #[test]
    fn only_hs256_with_our_key_in_canonical_form() {
        let claims = json!({"sub": "7"});
        assert_eq!(verified(Algorithm::HS384, &claims), None);
        assert_eq!(verified(Algorithm::HS512, &claims), None);
        let token = |key: &[u8]| {
            encode(&Header::default(), &claims, &EncodingKey::from_secret(key).expect("a key")).expect("a token")
        };
        assert_eq!(authorized(&format!("Bearer {}", token(b"other"))), None);
        let good = token(b"key");
        assert_eq!(authorized(&format!("bearer {good}")), Some(7));
        assert_eq!(authorized(&format!("BEARER  {good}")), Some(7));
        for wrong in [
            format!("Bearer {good}="),
            format!("Bearer {good} "),
            format!("Bearer {good} x"),
            format!("Token {good}"),
            format!("Bearer{good}"),
            good.clone(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            "Bearer a.b.c".to_owned(),
        ] {
            assert_eq!(authorized(&wrong), None, "{wrong}");
        }
        // The last character of a 32-byte signature carries four bits: another one with the same four is not canonical.
        let last = good.as_bytes()[good.len() - 1];
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let place = alphabet.iter().position(|&c| c == last).expect("base64url");
        let loose = format!("{}{}", &good[..good.len() - 1], alphabet[place | 1] as char);
        assert_ne!(loose, good);
        assert_eq!(authorized(&format!("Bearer {loose}")), None);
    }

    #[test]
    fn alg_none_is_refused() {
        use base64::Engine as _;
        let text = |json: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json);
        let unsigned = format!("{}.{}.", text(r#"{"alg":"none"}"#), text(r#"{"sub":"7"}"#));
        assert_eq!(authorized(&format!("Bearer {unsigned}")), None);
        let no_alg = format!("{}.{}.", text("{}"), text(r#"{"sub":"7"}"#));
        assert_eq!(authorized(&format!("Bearer {no_alg}")), None);
    }
}
