//! The traps that users of other load generators fell into, and the test that keeps this one out of each.

use std::fs;
use std::path::Path;

/// What goes wrong elsewhere, and our tests of it; an empty list says in its text why it cannot happen.
const TRAPS: [(&str, &[&str]); 42] = [
    (
        "latencies far above what rate and connections allow",
        &["each_fault_has_its_reason", "littles_law_counts_all_time_and_needs_a_sample"],
    ),
    ("a clock that is set back gives absurd times: every time here is of the monotonic clock", &[]),
    (
        "fewer connections than asked for, and the run goes on",
        &["a_refused_connection_stops_the_start_with_count_errno_and_remedy"],
    ),
    (
        "out of file handles, told as failed connects",
        &["more_connections_than_open_files_are_refused_before_the_first"],
    ),
    (
        "connections that do not divide by the threads are dropped",
        &["connections_are_spread_exactly_and_stay_over_several_windows"],
    ),
    (
        "HEAD, 204 and 304 wait for a body",
        &["head_has_no_body_whatever_its_length_says", "replies_without_a_body_end_with_their_head"],
    ),
    (
        "an interim reply counts as the reply",
        &["every_legal_framing_counts", "interim_replies_are_skipped_up_to_a_bound"],
    ),
    ("a reply without a length never ends", &["a_reply_without_a_length_lasts_until_the_close_and_is_told_apart"]),
    (
        "the close of an idle connection is an error",
        &[
            "a_close_between_warm_up_and_window_is_a_reconnect",
            "connections_that_are_closed_while_idle_are_opened_again",
        ],
    ),
    (
        "all errors are one number",
        &[
            "a_close_inside_the_body_is_an_error",
            "what_is_not_http_is_a_parse_error",
            "a_failed_connect_is_named_with_its_remedy",
        ],
    ),
    (
        "a dead server is connected to in a hot loop",
        &["waits_between_reconnects_double_up_to_a_limit", "a_server_that_dies_ends_the_window_early"],
    ),
    ("a header that cannot be read is left out", &["headers_are_taken_or_refused"]),
    (
        "replies slower than the limit leave a latency of 0",
        &["a_server_that_never_answers_gives_timeouts_and_no_figures"],
    ),
    (
        "a request that timed out goes on and counts when it ends",
        &["a_server_that_never_answers_gives_timeouts_and_no_figures"],
    ),
    ("requests in flight at the end vanish", &["a_reply_after_the_window_is_a_latency_and_no_throughput"]),
    (
        "the end of the run looks like errors of the server",
        &["a_starved_connection_is_recorded_and_does_not_void_the_window"],
    ),
    ("fast error replies raise the rate", &["fast_failures_are_no_throughput", "only_the_status_asked_for_counts"]),
    ("memory grows with the number of requests: a thread has its histograms, and they are bounded", &[]),
    ("averages are wrong past a million of requests", &["many_requests_keep_their_mean"]),
    ("the remainder of connections or requests is dropped", &["connections_are_spread_exactly_with_different_starts"]),
    ("requests are sent again unseen", &["what_the_driver_counts_is_what_the_server_answered"]),
    ("the host header cannot be set", &["requests_are_rendered_with_one_host_and_a_length_where_one_is_due"]),
    (
        "a head or body longer than a buffer fails",
        &["a_reply_longer_than_every_buffer_counts", "a_head_may_be_long_but_not_endless"],
    ),
    (
        "connection: close is not obeyed",
        &["an_announced_close_is_a_reconnect_and_no_error", "connection_close_and_old_versions_are_obeyed"],
    ),
    ("a half-closed connection confuses proxies: the driver never shuts one direction down", &[]),
    ("a stalled connection idles the run to its end", &["a_server_that_never_answers_gives_timeouts_and_no_figures"]),
    (
        "a run without a sample is printed as zeros",
        &["no_sample_gives_no_figure", "a_window_without_anything_has_nulls_and_no_nan"],
    ),
    ("a run without a success ends well", &["a_server_that_only_fails_has_no_figures_and_exit_code_1"]),
    ("pipelined requests share a time: one request is in flight on a connection", &[]),
    ("a rate in the wrong unit", &["threads_send_in_turn_at_equal_distances"]),
    (
        "the driver's own delay is charged to the server",
        &["an_open_loop_keeps_its_schedule_and_sends_in_time", "what_finds_no_connection_waits_and_its_wait_counts"],
    ),
    ("every connection paces itself, and all of them burst together", &["threads_send_in_turn_at_equal_distances"]),
    ("the clock starts before or after the threads", &["as_many_are_sent_as_are_due"]),
    ("connections that wait for their turn time out", &["a_connection_that_waits_for_its_turn_does_not_time_out"]),
    ("samples are invented", &["a_stall_is_seen_by_all_that_were_due_meanwhile", "as_many_are_sent_as_are_due"]),
    ("a percentile is the mean of some requests", &["percentiles_are_nearest_ranks"]),
    ("merged runs are divided by the time between them: a window is one run of one process", &[]),
    ("ports left waiting by the run before", &["local_ports_that_do_not_suffice_are_refused_before_the_first"]),
    ("a server that answers from the head alone", &["a_reply_to_half_a_request_is_an_early_reply"]),
    (
        "rates that cannot be: replies to nothing, connections without any",
        &["two_replies_to_one_request_are_surplus", "a_starved_connection_is_recorded_and_does_not_void_the_window"],
    ),
    ("localhost is another address for the server", &["a_name_becomes_the_address_that_accepts"]),
    ("targets are rewritten", &["the_path_is_sent_verbatim"]),
];

#[test]
fn every_trap_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    let mut folders = vec![root.join("src/load"), root.join("tests/it")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                code.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    for (number, (trap, tests)) in TRAPS.iter().enumerate() {
        assert!(!tests.is_empty() || trap.contains(": "), "trap {} has neither a test nor a reason", number + 1);
        for test in *tests {
            assert!(
                code.contains(&format!("#[test]\n    fn {test}()")) || code.contains(&format!("#[test]\nfn {test}()")),
                "{test}"
            );
        }
    }
}
