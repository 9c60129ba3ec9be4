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

/// `percentile, latency, requests up to it`, at percentiles that halve what is left, as far as the window supports them.
pub(super) fn percentiles(window: &Window) -> String {
    let mut text = String::from("  Latency distribution\n     percentile      latency     requests\n");
    for whole in (1..=TABLE_HALVES).map(|halves| 1_u64 << halves) {
        let Some(value) = window.percentile(whole - 1, whole) else { break };
        writeln!(
            text,
            "  {:>11.5} % {:>9.3} ms {:>12}",
            100.0 - 100.0 / whole as f64,
            value as f64 / 1e6,
            window.latency_histogram_ns.count_between(0, value)
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
