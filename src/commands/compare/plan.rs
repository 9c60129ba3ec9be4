//! A plan as lines for people.

use std::time::Duration;

use headroom::compare::Planned;

/// What is measured, in which order, under which rules, and how long that takes.
pub(super) fn text(planned: &Planned) -> String {
    let settings = &planned.settings;
    let names: Vec<&str> = planned.servers.iter().map(|server| server.name.as_str()).collect();
    let suite = settings.suite.as_deref().map_or_else(String::new, |suite| format!(", suite {suite}"));
    let limits = &settings.limits;
    let connections: Vec<String> = settings.connections.iter().map(u32::to_string).collect();
    let lines = [
        format!(
            "plan: {} cells, {} profile{suite}, {} round{}",
            planned.cells,
            settings.profile,
            settings.rounds,
            plural(settings.rounds)
        ),
        format!("  servers      {}", names.join(", ")),
        format!("  routes       {}", settings.routes.join(", ")),
        format!("  connections  {}", connections.join(", ")),
        format!(
            "  a window     {} s warm-up ({} s after a start), {} s measured, up to {} tries",
            settings.warmup_s, settings.first_warmup_s, settings.window_s, settings.max_attempts
        ),
        format!(
            "  void above   {:.1} % foreign CPU, {:.1} % steal, {} Postgres connections",
            limits.max_foreign_cpu_share * 100.0,
            limits.max_steal_share * 100.0,
            limits.max_postgres_connections
        ),
        format!("  first order  {}", planned.first_round.join(", ")),
        format!("  takes        {} once all is installed and built", shown(planned.duration)),
        format!("  record       {}", planned.dir.display()),
    ];
    lines.join("\n") + "\n"
}

fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// `1 h 5 min`, `6 min`, `40 s`: nobody plans a wait to the second.
fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds.div_ceil(60) % 60) {
        (0, _) if seconds < 90 => format!("{seconds} s"),
        (0, _) => format!("{} min", seconds.div_ceil(60)),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let shown = |seconds| super::shown(Duration::from_secs(seconds));
        assert_eq!(
            [0, 89, 90, 3_599, 3_600, 3_661].map(shown),
            ["0 s", "89 s", "2 min", "60 min", "1 h 0 min", "1 h 2 min"]
        );
    }
}
