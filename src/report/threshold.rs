//! `--fail-below`: the share of the native requests per second that a server must reach. Pure.

use std::fmt;
use std::str::FromStr;

use anyhow::ensure;

/// A server's requests per second ÷ those of the native row it is divided by: 1 ÷ headroom.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Name of the server.
    pub server: String,
    /// Name of the route.
    pub route: String,
    /// Of the driver.
    pub connections: u32,
    /// `None` where no round has valid windows of both.
    pub value: Option<f64>,
}

/// What was typed: `0.5`, `my-server=0.5`, `my-server:user=0.5`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// `None` means every server that is not native.
    pub server: Option<String>,
    /// `None` means every route.
    pub route: Option<String>,
    /// Least share.
    pub least: f64,
}

impl Threshold {
    /// Whether this share is held against the threshold.
    pub fn concerns(&self, share: &Share, is_native: bool) -> bool {
        let server = self.server.as_ref().map_or(!is_native, |server| *server == share.server);
        server && self.route.as_ref().is_none_or(|route| *route == share.route)
    }

    /// Refuses a threshold for what is not measured.
    ///
    /// # Errors
    /// Names the server or route.
    pub fn ensure_measured(&self, servers: &[&str], routes: &[String]) -> anyhow::Result<()> {
        if let Some(server) = &self.server {
            let known = servers.contains(&server.as_str());
            ensure!(known, "--fail-below {self}: {server} is not measured: name one of {}", servers.join(", "));
        }
        if let Some(route) = &self.route {
            ensure!(
                routes.contains(route),
                "--fail-below {self}: {route} is not measured: name one of {}",
                routes.join(", ")
            );
        }
        Ok(())
    }

    /// What is wrong with a share it concerns, in one line. A figure that is missing is not good.
    pub fn missed(&self, share: &Share) -> Option<String> {
        let Share { server, route, connections, value } = share;
        let asked = format!("--fail-below {self} asks for {}", self.least);
        match value {
            Some(value) if *value >= self.least => None,
            Some(value) => Some(format!(
                "{server} served {value:.3} of the native requests/s on {route} at {connections} connections: {asked}"
            )),
            None => Some(format!("{server} has no figure on {route} at {connections} connections: {asked}")),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.server, &self.route) {
            (Some(server), Some(route)) => write!(out, "{server}:{route}={}", self.least),
            (Some(server), None) => write!(out, "{server}={}", self.least),
            (None, Some(route)) => write!(out, ":{route}={}", self.least),
            (None, None) => write!(out, "{}", self.least),
        }
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (whom, least) = text.rsplit_once('=').unwrap_or(("", text));
        let (server, route) = whom.split_once(':').map_or((whom, None), |(server, route)| (server, Some(route)));
        let least = least.parse::<f64>().ok().filter(|least| least.is_finite() && *least > 0.0);
        let least = least.ok_or("use a share above 0, such as 0.5, my-server=0.5 or my-server:user=0.5")?;
        let route = route.map(str::to_owned);
        Ok(Self { server: (!server.is_empty()).then(|| server.to_owned()), route, least })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(server: &str, route: &str, value: Option<f64>) -> Share {
        Share { server: server.to_owned(), route: route.to_owned(), connections: 100, value }
    }

    #[test]
    fn what_is_typed_comes_back() {
        for text in ["0.5", "mine=0.5", "mine:user=0.25", ":list=1.5"] {
            assert_eq!(text.parse::<Threshold>().unwrap().to_string(), text);
        }
        for nonsense in ["", "x", "0", "-1", "NaN", "inf", "mine=", "mine 0.5"] {
            assert!(nonsense.parse::<Threshold>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn it_concerns_whom_it_names() {
        let all: Threshold = "0.5".parse().unwrap();
        assert!(all.concerns(&share("mine", "user", None), false) && !all.concerns(&share("sqlx", "user", None), true));
        let one: Threshold = "sqlx:user=0.5".parse().unwrap();
        assert!(one.concerns(&share("sqlx", "user", None), true) && !one.concerns(&share("sqlx", "me", None), true));
    }

    #[test]
    fn what_is_not_measured_cannot_be_asked_for() {
        let routes = ["user".to_owned()];
        let ask = |text: &str| text.parse::<Threshold>().unwrap().ensure_measured(&["mine"], &routes);
        assert!(ask("mine:user=1").is_ok() && ask("1").is_ok());
        assert!(ask("other=1").unwrap_err().to_string().contains("other is not measured"));
        assert!(ask("mine:list=1").unwrap_err().to_string().contains("list is not measured"));
    }

    #[test]
    fn at_the_threshold_is_enough_and_nothing_is_not() {
        let half: Threshold = "mine:user=0.5".parse().unwrap();
        assert_eq!(half.missed(&share("mine", "user", Some(0.5))), None);
        let line = half.missed(&share("mine", "user", Some(0.4996))).unwrap();
        assert_eq!(
            line,
            "mine served 0.500 of the native requests/s on user at 100 connections: --fail-below mine:user=0.5 asks for 0.5"
        );
        assert!(half.missed(&share("mine", "user", None)).unwrap().contains("no figure"));
    }
}
