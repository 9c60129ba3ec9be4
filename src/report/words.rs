//! What each word of a report means, short. METHODOLOGY.md says it at length.

use super::document::Document;
use crate::record::Record;
use crate::stats::{CONFIDENCE, VERDICT_ROUNDS};

pub(super) fn write(record: &Record, document: &mut Document) {
    document.heading("Words");
    let mut lines = vec![
        "requests/s: replies that count ÷ seconds, median over the rounds with a valid window".to_owned(),
        "headroom, CPU headroom: geometric mean of the per-round ratios. Everything shares one host, so rates compress and costs do not: read both".to_owned(),
        "p50, p99: median of the rounds' percentiles, closed loop: mostly connections ÷ rate. –: too few samples, or it lies among requests that were never answered".to_owned(),
        "server, Postgres, driver µs: CPU time per reply of the server's process tree, of Postgres and of the load driver".to_owned(),
        "peak MiB: high-water mark of the server's processes within the window, summed".to_owned(),
        "void: the window broke a rule (see the reasons) and enters no figure".to_owned(),
        "all cores: stands beside the others; no ratio mixes it with a one-core row".to_owned(),
    ];
    if record.run.settings.rounds > 1 {
        lines.push(format!(
            "{:.0} % interval: Student's t on the mean log ratio. Words (ahead, behind, no difference) need {VERDICT_ROUNDS} paired rounds",
            CONFIDENCE * 100.0
        ));
    }
    document.list(lines);
}
