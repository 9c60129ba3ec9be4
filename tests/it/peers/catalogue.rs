//! `peers.toml`: ours is sound, and what is wrong in another is named with its line.

use std::fs;
use std::path::Path;

use headroom::interrupt::Interrupt;
use headroom::peer::{Catalogue, Class, install, versions};
use headroom::progress::Silent;

use super::servers::entry;

fn bench() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bench")
}

/// What is said of a file with this content.
fn refusal(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("peers.toml"), text).unwrap();
    let error = format!("{:#}", Catalogue::load(folder.path()).unwrap_err());
    assert!(!error.contains('\n'), "more than a line: {error}");
    error
}

/// A file with one entry whose command is `command`, and more.
fn with(more: &str) -> String {
    format!("version = 1\n{}\n{more}\n", entry("server"))
}

#[test]
fn ours_is_sound() {
    let catalogue = Catalogue::load(&bench()).unwrap();
    let names: Vec<&str> = catalogue.servers.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "native",
            "native-sqlx",
            "native-sqlx-held",
            "native-axum",
            "native-all",
            "elysia-bun-sql",
            "elysia-bun",
            "express-node"
        ]
    );
    assert_eq!(catalogue.find("native").unwrap().class, Class::Reference);
    let error = catalogue.find("nativ").unwrap_err().to_string();
    assert!(error.contains("\"nativ\"") && error.contains("native, native-sqlx"), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = format!("{:#}", Catalogue::load(folder.path()).unwrap_err());
    assert!(error.contains("cannot read") && error.contains("peers.toml"), "{error}");
}

#[test]
fn faults_are_named_with_their_line() {
    for (text, wanted) in [
        (with("command = [\"x\"]\nnativ = true"), "peers.toml:15: unknown field `nativ`"),
        (with(""), "peers.toml:2: missing field `command`"),
        (with("command = \"x\""), "peers.toml:14: "),
        (with("command = ["), "peers.toml:1"),
        ("version = 1\n".to_owned(), "no [[peer]] entry"),
        (with("command = [\"x\"]").replace("version", "verson"), "peers.toml:1: unknown field `verson`"),
        ("version = 2\n".to_owned(), "version 2 is not known"),
        (with("command = []"), "peers.toml:2: peer \"server\": command is empty"),
        (with("command = [\"x\", \"{prot}\"]"), "{prot}"),
        (with("command = [\"x\", \"{jwt_secret}\"]"), "{jwt_secret}"),
        (with("command = [\"x\"]\nenv = { PORT = \"1\" }"), "env sets PORT"),
        (with("command = [\"x\"]\nenv = { HEADROOM_RUN = \"1\" }"), "env sets HEADROOM_RUN"),
        (with("command = [\"x\"]\nsource = \"gone.js\""), "gone.js does not exist"),
        (with("command = [\"x\"]\n").replace("\"server\"", "\"My Server\""), "lower case letters"),
        (with("command = [\"x\"]\n").replace("processes = 1", "processes = 0"), "processes is 0"),
        (with("command = [\"x\"]\n").replace("\"idiomatic\"", "\"fast\""), "unknown variant `fast`"),
        (
            format!("{}{}\ncommand = [\"x\"]\n", with("command = [\"x\"]"), entry("server")),
            "peer \"server\" stands there twice",
        ),
    ] {
        let error = refusal(&text);
        assert!(error.contains(wanted), "{error}\n  does not say {wanted:?} of\n{text}");
    }
}

#[test]
fn the_pinned_versions_are_those_of_the_record() {
    let bench = bench();
    install(&bench, &Silent, &Interrupt::default()).unwrap();
    let catalogue = Catalogue::load(&bench).unwrap();
    let express = versions(catalogue.find("express-node").unwrap(), &bench).unwrap();
    assert!(express["node"].starts_with("26.") && express["express"].starts_with("5."), "{express:?}");
    let elysia = versions(catalogue.find("elysia-bun").unwrap(), &bench).unwrap();
    assert!(elysia["bun"].starts_with("1.4.") && elysia["elysia"].starts_with("1.4."), "{elysia:?}");
}

#[test]
fn the_lockfile_names_no_host_and_pins_every_package() {
    let lockfile = fs::read_to_string(bench().join("peers/package-lock.json")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lockfile).unwrap();
    assert_eq!(lock["lockfileVersion"], 3);
    for (name, package) in lock["packages"].as_object().unwrap() {
        assert!(package.get("resolved").is_none(), "{name} names where it was downloaded from");
        assert!(name.is_empty() || package["integrity"].is_string(), "{name} has no hash");
    }
}
