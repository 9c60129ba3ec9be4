//! `GET /users?page&limit`.

use crate::contract::render_user;
use crate::dataset::{USERS, user};
use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{any_refusal, ok, unprocessable};
use crate::parity::request::get;
use crate::parity::values::Values;

/// Queries that are 422: id, what it proves, query.
const REFUSED: &[(&str, &str, &str)] = &[
    ("list-accepts-page-zero", "page is at least 1", "page=0"),
    ("list-accepts-page-negative", "page has no sign", "page=-1"),
    ("list-accepts-page-letters", "page is a number", "page=abc"),
    ("list-accepts-page-fraction", "page is an integer", "page=1.5"),
    ("list-accepts-page-above", "page is at most 2147483647", "page=2147483648"),
    ("list-accepts-limit-zero", "limit is at least 1", "limit=0"),
    ("list-accepts-limit-above", "limit is at most 100", "limit=101"),
    ("list-accepts-limit-negative", "limit has no sign", "limit=-1"),
    ("list-accepts-limit-letters", "limit is a number", "page=1&limit=abc"),
];

/// Queries that are 422 where the pattern is written by hand.
const STRICTLY_REFUSED: &[(&str, &str, &str)] = &[
    ("list-accepts-leading-zero", "page has no leading zero", "page=01"),
    ("list-accepts-plus", "page has no sign, however it is encoded", "page=%2B1"),
    ("list-accepts-space", "a plus in a query is a space, and page has none", "page=+1"),
    ("list-accepts-exponent", "page has no exponent", "page=1e1"),
    ("list-accepts-hex", "limit is decimal", "limit=0x10"),
    ("list-accepts-empty-page", "an empty page is not the default", "page="),
    ("list-accepts-empty-limit", "an empty limit is not the default", "limit="),
    ("list-accepts-page-twice", "a key given twice is 422", "page=1&page=2"),
    ("list-accepts-limit-twice", "a key given twice is 422, the same value too", "limit=5&limit=5"),
];

/// Pages beside the seeded ones: id, what it proves, query, page, limit.
const PAGES: &[(&str, &str, &str, u32, u32)] = &[
    ("list-default-page-differs", "page is 1 where it is not given", "?limit=5", 1, 5),
    ("list-default-limit-differs", "limit is 20 where it is not given", "?page=3", 3, 20),
    ("list-defaults-differ", "without a query it is page 1 of 20", "", 1, 20),
    ("list-refuses-limit-one", "limit may be 1", "?page=49999&limit=1", 49_999, 1),
    ("list-refuses-limit-100", "limit may be 100", "?page=2&limit=100", 2, 100),
    ("list-last-page-differs", "the last page holds what is left", "?page=1667&limit=30", 1667, 30),
    ("list-past-end-differs", "a page past the end is 200 without items", "?page=2501&limit=20", 2501, 20),
    (
        "list-far-past-end-differs",
        "the last possible page is 200 without items",
        "?page=2147483647&limit=100",
        2_147_483_647,
        100,
    ),
];

pub(super) fn checks(values: &Values) -> Vec<Check> {
    let Values { page, limit, .. } = *values;
    let mut checks = vec![
        core("list-page-differs", "a page is its rows by id and no key more, byte for byte")
            .sends_all([
                (get(format!("/users?page={page}&limit={limit}")), ok(page_of(page, limit))),
                (get(format!("/users?limit=20&page={page}")), ok(page_of(page, 20))),
            ])
            .shows_data(),
        core("list-forty-digits-not-refused", "forty digits are refused, as page and as limit")
            .sends_all(["page", "limit"].map(|key| (get(format!("/users?{key}={}", "9".repeat(40))), any_refusal()))),
        strict("list-unknown-key-refused", "an unknown key of the query is ignored")
            .sends(get("/users?sort=name&page=2&limit=3"), ok(page_of(2, 3))),
        strict("list-array-key-read", "page[] is an unknown key")
            .sends(get("/users?page[]=7&limit=3"), ok(page_of(1, 3))),
        strict("list-empty-pairs-refused", "empty pairs of the query are ignored")
            .sends(get("/users?&page=2&&limit=3&"), ok(page_of(2, 3))),
        strict("list-encoded-key-not-read", "keys and values of the query are percent-decoded")
            .sends(get("/users?%70age=%32&limit=3"), ok(page_of(2, 3))),
    ];
    checks.extend(PAGES.iter().map(|&(id, proves, query, page, limit)| {
        core(id, proves).sends(get(format!("/users{query}")), ok(page_of(page, limit)))
    }));
    checks.extend(REFUSED.iter().map(|&(id, proves, query)| core(id, proves).sends(by_query(query), unprocessable())));
    checks.extend(
        STRICTLY_REFUSED.iter().map(|&(id, proves, query)| strict(id, proves).sends(by_query(query), unprocessable())),
    );
    checks
}

fn by_query(query: &str) -> crate::parity::request::Request {
    get(format!("/users?{query}"))
}

/// The body the contract owes for a page, empty past the end.
pub(super) fn page_of(page: u32, limit: u32) -> String {
    let first = u64::from(page - 1) * u64::from(limit) + 1;
    let last = (first + u64::from(limit) - 1).min(u64::from(USERS));
    let items: Vec<String> =
        (first..=last).map(|id| render_user(&user(u32::try_from(id).expect("at most the last user")))).collect();
    format!(r#"{{"page":{page},"limit":{limit},"items":[{}]}}"#, items.join(","))
}

#[cfg(test)]
mod tests {
    use super::page_of;

    #[test]
    fn a_page_ends_with_the_data() {
        assert_eq!(page_of(1667, 30).matches("\"id\"").count(), 20);
        assert!(page_of(1667, 30).ends_with(r#""createdAt":"2023-11-15T12:06:39.000Z"}]}"#));
        assert_eq!(page_of(2501, 20), r#"{"page":2501,"limit":20,"items":[]}"#);
        assert_eq!(page_of(u32::MAX >> 1, 100), r#"{"page":2147483647,"limit":100,"items":[]}"#);
    }
}
