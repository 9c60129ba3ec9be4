//! How progress looks: a bar with an ETA on a terminal, plain lines elsewhere, nothing with `-q`. All of it on stderr.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use headroom::progress::{Progress, Silent};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the spinner turns while a step lasts.
const TICK: Duration = Duration::from_millis(120);

/// The progress for this process's stderr.
pub(crate) fn progress(quiet: bool) -> Box<dyn Progress> {
    if quiet {
        Box::new(Silent)
    } else if std::io::stderr().is_terminal() {
        Box::new(Bar::new())
    } else {
        Box::new(Lines { start: Instant::now() })
    }
}

/// One line each, with the seconds since the start.
struct Lines {
    start: Instant,
}

impl Lines {
    fn line(&self, text: &str) {
        // A closed stderr is no reason to stop working.
        let _ = writeln!(std::io::stderr(), "[{:>4} s] {text}", self.start.elapsed().as_secs());
    }
}

impl Progress for Lines {
    fn step(&self, text: &str) {
        self.line(text);
    }

    fn note(&self, text: &str) {
        self.line(text);
    }

    fn advance(&self, _: Duration, _: Duration) {}

    fn finish(&self) {}
}

/// A single line that is drawn over.
struct Bar {
    bar: ProgressBar,
}

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("{spinner} {wide_msg}").expect("a valid template"));
        bar.enable_steady_tick(TICK);
        Self { bar }
    }
}

impl Progress for Bar {
    fn step(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    fn note(&self, text: &str) {
        self.bar.println(text);
    }

    fn advance(&self, done: Duration, total: Duration) {
        if self.bar.length().is_none() {
            let template = "{spinner} [{bar:24}] {prefix} left  {wide_msg}";
            let style = ProgressStyle::with_template(template).expect("a valid template");
            self.bar.set_style(style.progress_chars("=> "));
        }
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.bar.set_length(millis(total));
        self.bar.set_position(millis(done));
        let left = total.saturating_sub(done).as_secs();
        self.bar.set_prefix(format!("{}:{:02}", left / 60, left % 60));
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
