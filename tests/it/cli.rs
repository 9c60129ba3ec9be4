//! The command line: help, exit codes, and errors of one line that name the thing, the value and the remedy.

use std::process::{Command, Output};

use crate::support;

fn headroom(arguments: &[&str]) -> Output {
    let mut command = Command::new(support::headroom());
    // A state folder of its own that does not exist: no command here may need one.
    command.env("HEADROOM_HOME", "/var/tmp/headroom-test-nowhere").env_remove("DATABASE_URL");
    command.args(arguments).output().expect("the binary runs")
}

/// The one line of a command that was wrong.
fn refused(arguments: &[&str]) -> String {
    let output = headroom(arguments);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    let line = stderr.strip_prefix("headroom: ").unwrap_or_else(|| panic!("{arguments:?}: {stderr}"));
    assert_eq!(line.trim_end().lines().count(), 1, "{arguments:?}: {stderr}");
    line.trim_end().to_owned()
}

#[test]
fn help_names_every_command() {
    let output = headroom(&["--help"]);
    assert!(output.status.success());
    insta::assert_snapshot!(String::from_utf8(output.stdout).expect("UTF-8"));
}

#[test]
fn every_command_has_help() {
    for command in ["compare", "serve", "load", "parity", "report", "postgres", "doctor"] {
        let output = headroom(&[command, "--help"]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{command}");
    }
}

#[test]
fn what_cannot_be_done_is_said_in_one_line() {
    for (arguments, named) in [
        (&["load", "ftp://127.0.0.1"][..], "http://host:port/path"),
        (&["load", "http://127.0.0.1:1"], "connection refused"),
        (&["load", "http://127.0.0.1:1", "-c", "0"], "0 connections"),
        (&["load", "http://127.0.0.1:1", "-d", "0s"], "-d 0"),
        (&["load", "http://127.0.0.1:1/health", "--route", "user"], "without /health"),
        (&["load", "http://127.0.0.1:1", "--body-file", "/nonexistent"], "/nonexistent"),
        (&["parity", "http://127.0.0.1:1"], "127.0.0.1:1"),
        (&["parity", "http://127.0.0.1:1/x"], "without /x"),
        (&["report", "/nonexistent"], "/nonexistent"),
        (&["serve"], "DATABASE_URL"),
        (&["postgres", "url"], "postgres start"),
        (&["compare", "--peer", "nobody"], "nobody"),
        (&["compare", "--suite", "nothing"], "nothing"),
        (&["compare", "--resume", "/nonexistent"], "/nonexistent"),
        (&["compare", "--rounds", "0"], "0 rounds"),
        (&["compare", "--bench", "/nonexistent"], "/nonexistent"),
    ] {
        let line = refused(arguments);
        assert!(line.contains(named), "{arguments:?}: {line}");
    }
}

#[test]
fn a_password_in_a_url_is_not_shown() {
    let line = refused(&["load", "http://user:hidden@127.0.0.1:1/"]);
    assert!(line.contains("127.0.0.1:1") && !line.contains("hidden"), "{line}");
}

#[test]
fn what_might_never_end_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (record, pipe) = (folder.path().to_str().unwrap(), folder.path().join("run.json"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(refused(&["report", record]).contains("no regular file"));
    for file in [pipe.to_str().unwrap(), "/dev/zero"] {
        let line = refused(&["load", "http://127.0.0.1:1", "--body-file", file]);
        assert!(line.contains("no regular file"), "{line}");
    }
}

#[test]
fn a_stderr_that_takes_nothing_changes_no_exit_code() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = Command::new(support::headroom()).args(["load", "nonsense"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn a_state_folder_that_others_could_have_filled_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let database = "postgres://nobody@127.0.0.1:1/none";
    let output = Command::new(support::headroom())
        .args(["compare", "--peer", "native", "--database-url", database, "--out", "/nonexistent/out"])
        .env("HEADROOM_HOME", &link)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("symbolic link"), "{stderr}");
    assert_eq!(std::fs::read_dir(&real).unwrap().count(), 0, "nothing was written");
}

#[test]
fn what_cannot_be_read_is_refused_by_its_flag() {
    for arguments in [
        &["load", "http://127.0.0.1:1", "-d", "10x"][..],
        &["load", "http://127.0.0.1:1", "-H", "nocolon"],
        &["load", "http://127.0.0.1:1", "--route", "nope"],
        &["compare", "--route", "health,nope"],
        &["nope"],
    ] {
        let output = headroom(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let value = arguments.last().expect("a value").rsplit(',').next().expect("a last one");
        assert!(String::from_utf8_lossy(&output.stderr).contains(value), "{arguments:?}");
    }
}
