//! `headroom load` over Unix sockets and TLS, and what an interrupt leaves.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::load::sockets::{OK, Reply, Seen, Server, exchange};
use crate::support;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(support::headroom());
    command.arg("load").args(arguments).stdin(Stdio::null());
    command
}

fn load(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(arguments).output().expect("it runs");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// A server with a certificate for `localhost`, and the file of the authority that gave it.
struct Https {
    server: Server,
    folder: tempfile::TempDir,
}

impl Https {
    fn start(reply: &'static str) -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "headroom test authority");
        let authority =
            CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("a certificate");
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(["localhost".to_owned()])
            .and_then(|certificate| certificate.signed_by(&key, &authority))
            .expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).expect("written");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("protocols")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .expect("the key fits");
        let config = Arc::new(config);
        let server = Server::start(move |stream, seen| speak_tls(&config, stream, seen, reply));
        Self { server, folder }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/", self.server.address.port())
    }

    fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}

fn speak_tls(config: &Arc<ServerConfig>, stream: TcpStream, seen: &Seen, reply: &str) {
    let session = ServerConnection::new(Arc::clone(config)).expect("a session");
    exchange(&mut StreamOwned::new(session, stream), seen, |_, _| Some(Reply::from(reply)));
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn https_is_measured_where_the_certificate_is_trusted() {
    let https = Https::start(OK);
    let (url, authority) = (https.url(), https.authority());
    for trust in [&["--cacert", utf8(&authority)][..], &["--insecure"], &["-k"]] {
        let before = https.server.requests();
        let (code, text) = load(&[&[url.as_str(), "-c", "3", "-d", "200ms", "--json"], trust].concat());
        assert_eq!(code, Some(0), "{text}");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let counted = ["requests_ok", "drained"].map(|field| report[field].as_u64().expect("a count"));
        assert_eq!(counted.iter().sum::<u64>(), https.server.requests() - before, "{report}");
        assert!(counted[0] > 10, "{report}");
    }
}

#[test]
fn https_bodies_longer_than_a_tls_record_count() {
    let body = "b".repeat(200_000);
    let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let https = Https::start(Box::leak(reply.into_boxed_str()));
    let (code, text) = load(&[&https.url(), "-c", "2", "-d", "300ms", "-k", "-b", &"q".repeat(100_000)]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("VALID") && !text.contains("INVALID"), "{text}");
}

#[test]
fn a_certificate_that_is_not_trusted_is_refused_with_the_remedy() {
    let https = Https::start(OK);
    let other = Https::start(OK);
    let (url, stranger) = (https.url(), other.authority());
    let by_address = url.replace("localhost", "127.0.0.1");
    let authority = https.authority();
    for arguments in
        [&[url.as_str()][..], &[&url, "--cacert", utf8(&stranger)], &[&by_address, "--cacert", utf8(&authority)]]
    {
        let (code, text) = load(&[arguments, &["-c", "2", "-d", "100ms"]].concat());
        assert_eq!((code, text.lines().count()), (Some(2), 1), "{text}");
        assert!(text.contains("only 0 of 2 connections") && text.contains("--cacert, or use --insecure"), "{text}");
    }
    assert_eq!((https.server.requests(), other.server.requests()), (0, 0));
}

#[test]
fn a_server_without_tls_and_an_authority_without_certificate_are_named() {
    let plain = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
    let url = format!("https://localhost:{}/", plain.address.port());
    let (code, text) = load(&[&url, "-c", "1", "-d", "100ms", "-k", "--timeout", "2s"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("TLS handshake failed"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    let (empty, missing) = (folder.path().join("empty.pem"), folder.path().join("missing.pem"));
    std::fs::write(&empty, "no certificate\n").expect("written");
    for (file, says) in [(&empty, "has no certificate"), (&missing, "missing.pem")] {
        let (code, text) = load(&[&url, "--cacert", utf8(file), "-d", "100ms"]);
        assert_eq!((code, text.lines().count()), (Some(2), 1), "{text}");
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn a_unix_socket_is_measured() {
    // More connections than the backlog (128 of std) takes at once.
    const CONNECTIONS: usize = 300;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("api.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let acceptor = std::thread::spawn(move || {
        let handlers: Vec<_> = listener
            .incoming()
            .take(CONNECTIONS)
            .map(|stream| {
                let mut stream = stream.expect("a connection");
                std::thread::spawn(move || {
                    let seen = Seen::default();
                    exchange(&mut stream, &seen, |_, head| head.contains("host: api.local\r\n").then(|| OK.into()));
                    seen.requests.into_inner()
                })
            })
            .collect();
        handlers.into_iter().map(|handler| handler.join().expect("no panic")).sum::<u64>()
    });
    let connections = CONNECTIONS.to_string();
    let (code, text) =
        load(&["http://api.local/", "--unix-socket", utf8(&path), "-c", &connections, "-d", "300ms", "--json"]);
    assert_eq!(code, Some(0), "{text}");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let counted = ["requests_ok", "drained"].map(|field| report[field].as_u64().expect("a count"));
    assert_eq!(counted.iter().sum::<u64>(), acceptor.join().expect("no panic"), "{report}");
    assert_eq!(report["address"], utf8(&path));
    let (code, text) = load(&["http://x/", "--unix-socket", utf8(&path), "-c", "1"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("ECONNREFUSED"), "{text}");
    let (code, text) = load(&["http://x/", "--unix-socket", "/nowhere/api.sock", "-c", "1"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("check --unix-socket"), "{text}");
}

/// Ended by id when a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_interrupted_window_is_shown_as_invalid() {
    let (told, seen) = std::sync::mpsc::channel();
    let server = Server::start(move |mut stream, seen| {
        exchange(&mut stream, seen, |number, _| {
            if number == 100 {
                let _ = told.send(());
            }
            Some(OK.into())
        });
    });
    let url = format!("http://{}/", server.address);
    let mut child = command(&[&url, "-c", "1", "-d", "1h"]);
    let mut child = Running(child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    seen.recv_timeout(crate::load::PATIENCE).expect("requests");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.0.id()).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    let (mut text, mut said) = (String::new(), String::new());
    child.0.stdout.take().expect("piped").read_to_string(&mut text).expect("UTF-8");
    BufReader::new(child.0.stderr.take().expect("piped")).read_line(&mut said).expect("UTF-8");
    assert_eq!(child.0.wait().expect("it ends").code(), Some(130), "{text}{said}");
    assert!(text.contains("Requests/sec") && text.contains("INVALID") && text.contains("interrupted"), "{text}");
}
