//! The distribution of a window: as a table, and as a log that the tools of `HdrHistogram` read.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use headroom::load::Window;

/// Halves of what is left that the table shows: enough for one request in a million.
const TABLE_HALVES: u32 = 20;

/// `value in ms, percentile, requests up to it`, at percentiles that halve what is left. Requests that were given up
/// count as longer than all others.
pub(super) fn percentiles(window: &Window) -> String {
    let histogram = &window.latency_histogram_ns;
    let total = histogram.len() + window.latency_censored;
    let mut text = String::from("  Latency distribution\n     percentile      latency     requests\n");
    let mut left = 1.0;
    for _ in 0..TABLE_HALVES {
        left /= 2.0;
        let share: f64 = 1.0 - left;
        // Ten samples must lie beyond a percentile that is told.
        if total as f64 * left < 10.0 || histogram.is_empty() {
            break;
        }
        let rank = total as f64 * share;
        if rank > histogram.len() as f64 {
            break;
        }
        let value = histogram.value_at_quantile(rank / histogram.len() as f64);
        writeln!(
            text,
            "  {:>11.5} % {:>9.3} ms {:>12}",
            share * 100.0,
            value as f64 / 1e6,
            histogram.count_between(0, value)
        )
        .expect("a string takes everything");
    }
    text
}

/// One interval for the whole window: latency without a tag, an open loop's service time and lag under theirs.
pub(super) fn write_hdr_log(path: &Path, window: &Window, started_at: SystemTime) -> anyhow::Result<()> {
    let write = || -> anyhow::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        let mut serializer = V2DeflateSerializer::new();
        let mut log = IntervalLogWriterBuilder::new()
            .add_comment("headroom load; everything in nanoseconds")
            .with_start_time(started_at)
            .with_base_time(started_at)
            .begin_log_with(&mut out, &mut serializer)?;
        let mut interval = |histogram: &Histogram<u64>, tag: Option<&str>| {
            let tag = tag.and_then(Tag::new);
            log.write_histogram(histogram, Duration::ZERO, window.window, tag)
                .map_err(|error| anyhow::anyhow!("{error:?}"))
        };
        interval(&window.latency_histogram_ns, None)?;
        if let Some(open) = &window.open {
            interval(&open.service_histogram_ns, Some("service"))?;
            interval(&open.lag_histogram_ns, Some("lag"))?;
        }
        Ok(out.flush()?)
    };
    write().with_context(|| format!("cannot write --hdr-log {}", path.display()))
}
