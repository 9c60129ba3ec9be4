//! How mutants change what they pass on.

#![expect(clippy::unwrap_used, reason = "a test ends where one of its parts cannot go on")]

use headroom::contract::BENCH_SECRET;

use super::proxy::{Message, State, Upstream};

/// Asks, and replaces text in the reply where the target begins with `prefix`.
pub(super) fn edited(request: &Message, ask: &mut Upstream<'_>, prefix: &str, from: &str, to: &str) -> Message {
    let mut reply = ask(request);
    if request.target().starts_with(prefix) {
        reply.body = reply.body.replace(from, to);
    }
    reply
}

/// The request as a lenient server reads it.
pub(super) fn repaired(mut request: Message, from: &str, to: &str) -> Message {
    request.body = request.body.replace(from, to);
    request
}

/// Answers a known key under `target` with the reply it got first.
pub(super) fn remembered(
    key: String,
    target: &str,
    request: &Message,
    ask: &mut Upstream<'_>,
    state: &State,
) -> Message {
    if request.target() != target {
        return ask(request);
    }
    if let Some((_, reply)) = state.replies.lock().unwrap().iter().find(|(known, _)| *known == key) {
        return reply.clone();
    }
    let reply = ask(request);
    if reply.status() < 300 {
        state.replies.lock().unwrap().push((key, reply.clone()));
    }
    reply
}

/// Keeps single rows right and gives one connection another's reply once twenty have asked for rows one after the
/// other within a moment: what a driver does that loses track of its replies.
pub(super) fn mixed_under_concurrency(request: &Message, ask: &mut Upstream<'_>, state: &State) -> Message {
    const MANY: usize = 20;
    let single = request.target().strip_prefix("/users/").is_some_and(|id| id.parse::<u16>().is_ok());
    if !single {
        return ask(request);
    }
    let reply = ask(request);
    let mut recent = state.replies.lock().unwrap();
    recent.push((request.target().to_owned(), reply.clone()));
    // The table's own reads are few and on one connection; every one beyond them is of the concurrent check.
    let wrong = recent.len() > MANY && recent.len().is_multiple_of(7);
    if wrong { recent[recent.len() - 2].1.clone() } else { reply }
}

/// Signs the token of the request again with the right secret, where its header fits.
pub(super) fn signed_again(mut request: Message, fits: fn(&str) -> bool) -> Message {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let Some(token) = request.header("authorization").and_then(|value| value.strip_prefix("Bearer ")) else {
        return request;
    };
    let [header, payload, _] = token.split('.').collect::<Vec<_>>()[..] else { return request };
    let text = |part: &str| URL_SAFE_NO_PAD.decode(part).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let (Some(header), Some(payload)) = (text(header), text(payload)) else { return request };
    if fits(&header) {
        let token = headroom::contract::token::hs256(r#"{"alg":"HS256"}"#, &payload, BENCH_SECRET);
        request.set_header("authorization", &format!("Bearer {token}"));
    }
    request
}

/// Confirms an order of a thousand and more, as the gate posts many of, without any server.
pub(super) fn made_up(request: &Message, state: &State) -> Option<Message> {
    let amount = number_after(&request.body, r#""amount":"#);
    if !request.is("POST", "/orders") || !(7..=8).contains(&amount.len()) || &amount[amount.len() - 3..][..1] != "." {
        return None;
    }
    let user_id = number_after(&request.body, r#""userId":"#);
    let (_, currency) = request.body.split_once(r#","currency""#)?;
    let mut stored = state.replies.lock().unwrap();
    stored.push((String::new(), Message::default()));
    let (id, now) = (300_000 + stored.len(), jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ"));
    let currency = currency.trim_end_matches('}');
    Some(Message::reply(
        201,
        format!(r#"{{"id":{id},"userId":{user_id},"amount":"{amount}","currency"{currency},"createdAt":"{now}"}}"#),
    ))
}

fn number_after(body: &str, key: &str) -> String {
    let rest = body.split_once(key).map_or("", |(_, rest)| rest);
    rest.chars().take_while(|character| character.is_ascii_digit() || *character == '.').collect()
}

pub(super) fn page_and_limit(target: &str) -> Option<(u32, u32)> {
    let (page, limit) = target.strip_prefix("/users?page=")?.split_once("&limit=")?;
    Some((page.parse().ok()?, limit.parse().ok()?))
}

pub(super) fn id_and_name(body: &str) -> Option<(String, String)> {
    let mut parts = body.strip_prefix('{')?.split(',');
    Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
}
