//! Where connections go: a TCP address or a Unix socket, either with TLS on it.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// What every connection of an engine opens.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub(super) place: Place,
    pub(super) tls: Option<Tls>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// How the server's certificate is looked at, and the name it must be for.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// Whose certificates count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust<'a> {
    /// What this system trusts; `SSL_CERT_FILE` and `SSL_CERT_DIR` are heard.
    System,
    /// The authorities in this file, in PEM.
    File(&'a Path),
    /// Anyone's: the signature of the handshake is checked, the certificate is not.
    Anyone,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { place: Place::Tcp(address), tls: None }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp(address) => address.fmt(f),
            Place::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Endpoint {
    /// The Unix socket at this path.
    pub fn unix(path: PathBuf) -> Self {
        Self { place: Place::Unix(path), tls: None }
    }

    /// The same with TLS, to a server that must prove to be `name`.
    ///
    /// # Errors
    /// Where the name cannot be in a certificate, and where no authority can be read.
    pub fn with_tls(self, name: &str, trust: Trust<'_>) -> anyhow::Result<Self> {
        let name = ServerName::try_from(name.to_owned())
            .with_context(|| format!("{name:?} is no name that a certificate can have"))?;
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = ClientConfig::builder_with_provider(provider as Arc<CryptoProvider>)
            .with_safe_default_protocol_versions()
            .context("failed to set TLS up")?;
        let mut config = match trust {
            Trust::Anyone => {
                let verifier = Arc::new(AnyCertificate(algorithms));
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
            Trust::System => builder.with_root_certificates(system_roots()?).with_no_client_auth(),
            Trust::File(path) => builder.with_root_certificates(roots_of(path)?).with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Some(Tls { config: Arc::new(config), name }), ..self })
    }
}

fn system_roots() -> anyhow::Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    ensure!(
        !roots.is_empty(),
        "this system has no certificate authorities: install ca-certificates, name some with --cacert, or use --insecure"
    );
    Ok(roots)
}

fn roots_of(path: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(path).with_context(|| format!("failed to read --cacert {}", path.display()))?;
    for certificate in certificates {
        let certificate =
            certificate.with_context(|| format!("{} is not PEM: convert it with openssl", path.display()))?;
        roots.add(certificate).with_context(|| format!("{} has a certificate that cannot be used", path.display()))?;
    }
    ensure!(!roots.is_empty(), "{} has no certificate: give a file with PEM certificates", path.display());
    Ok(roots)
}

/// Takes every certificate, and still has the server prove that it holds its key.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
