//! HS256 tokens, made by hand so that wrong ones can be made too.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Signs `payload` under `header` (both JSON text, used as they are) with HMAC-SHA-256: `header.payload.signature`.
pub fn hs256(header: &str, payload: &str, secret: &str) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

/// The token the driver sends for a user: header `{"alg":"HS256"}`, payload `{"sub":"ID","iat":0}`, no `exp`.
pub fn for_user(id: u32, secret: &str) -> String {
    hs256(r#"{"alg":"HS256"}"#, &format!(r#"{{"sub":"{id}","iat":0}}"#), secret)
}

#[cfg(test)]
mod tests {
    use crate::contract::{BENCH_SECRET, EXAMPLE_TOKEN};

    #[test]
    fn user_4242_has_the_published_token() {
        assert_eq!(super::for_user(4242, BENCH_SECRET), EXAMPLE_TOKEN);
    }
}
