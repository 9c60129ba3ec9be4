//! `http://host:port/path` → one literal address, the `host` header and the target, all of it as it was typed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::endpoint::{Endpoint, Trust};

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
/// How long an address of several gets to accept; a name such as `localhost` may stand for two, with a server on one.
const PROBE_LIMIT: Duration = Duration::from_secs(1);

/// The address to connect to, the value of the `host` header and the request target (path and query, verbatim).
/// Where a name has several addresses, the first one that accepts a connection is taken, so that everything later
/// speaks to the same one.
///
/// # Errors
/// Where the URL is not plain `http`, or its name has no address.
pub fn resolve(url: &str) -> anyhow::Result<(SocketAddr, String, String)> {
    let parts = split(url)?;
    ensure!(!parts.is_tls, "{url} is https, plain http is needed here: give the server behind the TLS proxy");
    Ok((address(url, &parts)?, parts.host.to_owned(), parts.target))
}

/// The same for the driver, which also speaks TLS and connects to Unix sockets: there the URL's host is only a name.
///
/// # Errors
/// Those of [`resolve`], and where no certificate authority can be read.
pub fn locate(url: &str, unix_socket: Option<&Path>, trust: Trust<'_>) -> anyhow::Result<(Endpoint, String, String)> {
    let parts = split(url)?;
    let endpoint = match unix_socket {
        Some(path) => Endpoint::unix(path.to_owned()),
        None => address(url, &parts)?.into(),
    };
    let endpoint = if parts.is_tls { endpoint.with_tls(parts.name, trust)? } else { endpoint };
    Ok((endpoint, parts.host.to_owned(), parts.target))
}

fn address(url: &str, parts: &Parts<'_>) -> anyhow::Result<SocketAddr> {
    let addresses: Vec<SocketAddr> = match parts.name.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, parts.port)],
        Err(_) => (parts.name, parts.port)
            .to_socket_addrs()
            .with_context(|| format!("failed to resolve {:?} of {url}: check the name", parts.name))?
            .collect(),
    };
    let Some(&first) = addresses.first() else { bail!("{:?} of {url} has no address: check the name", parts.name) };
    let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, PROBE_LIMIT).is_ok();
    Ok(if addresses.len() == 1 { first } else { addresses.iter().find(accepts).copied().unwrap_or(first) })
}

#[derive(Debug)]
struct Parts<'a> {
    is_tls: bool,
    /// Without brackets.
    name: &'a str,
    port: u16,
    /// As typed.
    host: &'a str,
    target: String,
}

fn split(url: &str) -> anyhow::Result<Parts<'_>> {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let is_tls = lower.starts_with("https://");
    let Some(rest) = (is_tls || lower.starts_with("http://")).then(|| &url[if is_tls { 8 } else { 7 }..]) else {
        bail!("{url:?} is not an http URL: write http://host:port/path");
    };
    let (host, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    ensure!(!target.contains('#'), "{url} has a fragment, which is never sent: leave out everything from #");
    if let Some((_, host)) = host.rsplit_once('@') {
        // Without what stands before the @: it holds a password more often than not.
        bail!("the URL of {host} has a user name: leave it out and send an authorization header instead");
    }
    let default_port = if is_tls { HTTPS_PORT } else { HTTP_PORT };
    let (name, port) = split_host(host, default_port).with_context(|| format!("failed to read the host of {url}"))?;
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    Ok(Parts { is_tls, name, port, host, target })
}

/// `[::1]:80`, `name:80`, `name` → name or address, and port.
fn split_host(host: &str, default_port: u16) -> anyhow::Result<(&str, u16)> {
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        let Some((name, port)) = rest.split_once(']') else { bail!("{host:?} has no closing bracket: write [::1]:80") };
        ensure!(name.parse::<Ipv6Addr>().is_ok(), "{name:?} is not an IPv6 address");
        (name, port)
    } else {
        ensure!(host.matches(':').count() <= 1, "{host:?} is an IPv6 address without brackets: write [::1]:80");
        host.split_at(host.find(':').unwrap_or(host.len()))
    };
    ensure!(!name.is_empty(), "there is no host name: write http://host:port/path");
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits
            .parse()
            .ok()
            .filter(|&port| port != 0)
            .with_context(|| format!("port {digits:?} is not 1 to 65535"))?,
        _ => bail!("{port:?} is not a port: write a colon and a number"),
    };
    Ok((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(url: &str) -> (String, String, String) {
        let (address, host, target) = resolve(url).unwrap();
        (address.to_string(), host, target)
    }

    fn strings(address: &str, host: &str, target: &str) -> (String, String, String) {
        (address.to_owned(), host.to_owned(), target.to_owned())
    }

    #[test]
    fn literal_addresses_are_taken_as_typed() {
        assert_eq!(resolved("http://127.0.0.1:3000/a"), strings("127.0.0.1:3000", "127.0.0.1:3000", "/a"));
        assert_eq!(resolved("HTTP://127.0.0.1"), strings("127.0.0.1:80", "127.0.0.1", "/"));
        assert_eq!(resolved("http://[::1]:8080/x?y"), strings("[::1]:8080", "[::1]:8080", "/x?y"));
        assert_eq!(resolved("http://127.0.0.1:1?q=1"), strings("127.0.0.1:1", "127.0.0.1:1", "/?q=1"));
    }

    #[test]
    fn the_path_is_sent_verbatim() {
        assert_eq!(resolved("http://127.0.0.1:1/a/%2E./../b//c?d=%zz").2, "/a/%2E./../b//c?d=%zz");
    }

    #[test]
    fn a_name_becomes_the_address_that_accepts() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://localhost:{}/", address.port());
        assert_eq!(resolved(&url), strings(&address.to_string(), &format!("localhost:{}", address.port()), "/"));
    }

    #[test]
    fn other_urls_are_refused_with_a_remedy() {
        for (url, says) in [
            ("https://127.0.0.1/", "behind the TLS proxy"),
            ("https://127.0.0.1:0/", "1 to 65535"),
            ("127.0.0.1:3000", "write http://"),
            ("ftp://127.0.0.1", "write http://"),
            ("http://127.0.0.1/#x", "fragment"),
            ("http://u:p@127.0.0.1/", "authorization"),
            ("http://::1/", "brackets"),
            ("http://[::1/", "closing bracket"),
            ("http://[x]:1/", "IPv6"),
            ("http:///x", "host name"),
            ("http://a:b/", "not a port"),
            ("http://a:/", "1 to 65535"),
            ("http://a:0/", "1 to 65535"),
            ("http://a:65536/", "1 to 65535"),
            ("http://[::1]80/", "not a port"),
        ] {
            let error = format!("{:#}", resolve(url).unwrap_err());
            assert!(error.contains(says), "{url}: {error}");
        }
    }
}
