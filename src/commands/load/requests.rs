//! What `headroom load` sends: one request, several from a file, or a route of the contract.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail, ensure};
use headroom::contract::{self, Variety};
use headroom::load::mix::{self, Part};
use headroom::load::template::Template;
use headroom::load::{self, Request};

use crate::cli;
use crate::commands::jwt_secret;

/// The requests, and the one status that counts (`None`: any 2xx).
pub(super) fn requests(args: &cli::Load, target: &str) -> anyhow::Result<(Vec<Request>, Option<u16>)> {
    let mut headers = args.headers.clone();
    if args.no_keepalive && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection")) {
        headers.push(("connection".to_owned(), "close".to_owned()));
    }
    if let Some(route) = args.route {
        ensure!(target == "/", "--route brings its own path: give the URL without {target}");
        let variety = if args.fixed { Variety::Fixed } else { Variety::Seeded(args.seed) };
        let requests = contract::requests(route, variety, &jwt_secret()).into_iter().map(|request| {
            let mut request = load::render(request);
            request.headers.extend(headers.iter().cloned());
            request
        });
        return Ok((requests.collect(), Some(route.success_status())));
    }
    let parts = match &args.targets {
        Some(path) => {
            ensure!(target == "/", "--targets brings its own paths: give the URL without {target}");
            let text = String::from_utf8(read("--targets", path)?)
                .with_context(|| format!("--targets {} is not UTF-8", path.display()))?;
            mix::parse_targets(&text).map_err(|why| anyhow!("--targets {}: {why}", path.display()))?
        }
        None => return single(args, target, &headers),
    };
    Ok((mix::write_out(&parts, &headers, args.seed), None))
}

/// One request; its target and the text of its body may have places.
fn single(args: &cli::Load, target: &str, headers: &[(String, String)]) -> anyhow::Result<(Vec<Request>, Option<u16>)> {
    let usual_method = if args.body.is_some() || args.body_file.is_some() { "POST" } else { "GET" };
    let method = args.method.clone().unwrap_or_else(|| usual_method.to_owned());
    let template = |text: &str| Template::parse(text).map_err(|why| anyhow!(why));
    let (body, written) = match (&args.body, &args.body_file) {
        (Some(body), None) => (template(body)?, None),
        // Sent as it is, whatever its bytes are.
        (None, Some(path)) => (template("")?, Some(read("--body-file", path)?)),
        (None, None) => (template("")?, None),
        (Some(_), Some(_)) => bail!("-b and --body-file exclude each other: give one of them"),
    };
    let part = Part { weight: 1, method, target: template(target)?, body };
    let mut requests = mix::write_out(&[part], headers, args.seed);
    if let Some(bytes) = written {
        ensure!(
            requests.len() == 1,
            "--body-file with places in the target would be held once for each of {} requests: use --targets",
            requests.len()
        );
        requests[0].body = bytes;
    }
    Ok((requests, None))
}

/// A file: a regular one, since a pipe or a device might never end, and of a size that can be sent.
fn read(flag: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    const LONGEST_BYTES: u64 = 64 << 20;
    let shown = path.display();
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {flag} {shown}: name a file"))?;
    ensure!(metadata.is_file(), "{flag} {shown} is no regular file: name one");
    ensure!(
        metadata.len() <= LONGEST_BYTES,
        "{flag} {shown} has {} bytes: use at most {LONGEST_BYTES}",
        metadata.len()
    );
    fs::read(path).with_context(|| format!("cannot read {flag} {shown}"))
}
