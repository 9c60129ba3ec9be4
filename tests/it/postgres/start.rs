//! Under which circumstances the cluster starts, and what it says where it cannot.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use headroom::interrupt::Interrupt;
use headroom::postgres::{Cluster, ClusterOptions, Database};
use headroom::progress::Silent;

use super::{Home, LONG, User, fresh_folder, lives, pgdata, postmaster};
use crate::support::{cluster_options, poll};

/// What starting with these options says.
fn refusal(options: &ClusterOptions) -> String {
    let error = Cluster::acquire(options, &Silent, &Interrupt::default()).expect_err("this cannot start");
    let text = format!("{error:#}");
    assert!(!text.contains('\n'), "one line: {text}");
    text
}

#[test]
fn ten_starts_at_once_all_work() {
    let homes: Vec<_> = (0..10).map(|_| fresh_folder()).collect();
    let mut users: Vec<User> = homes.iter().map(|home| User::start(home.path(), "hold", |_| ())).collect();
    let mut urls: Vec<String> = users.iter_mut().map(User::said).collect();
    for url in &urls {
        Database::connect(url).unwrap();
    }
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 10, "each its own");
    for user in &mut users {
        user.dismiss();
    }
    for user in &mut users {
        assert!(user.ended().success());
    }
}

#[test]
fn ten_users_at_once_share_one_start() {
    let home = Home::take();
    let clusters: Vec<Cluster> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..10).map(|_| scope.spawn(|| home.acquire())).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let pid = postmaster(home.path());
    assert!(clusters.iter().all(|cluster| cluster.url() == clusters[0].url()));
    std::thread::scope(|scope| {
        for cluster in clusters {
            scope.spawn(|| cluster.leave().unwrap());
        }
    });
    assert!(!lives(pid));
}

#[test]
fn users_that_come_while_others_go_get_in() {
    const TIMES: usize = 4;
    let home = Home::take();
    drop(home.acquire());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    home.acquire().leave().unwrap();
                }
            });
        }
    });
    assert!(!home.path().join("owner.json").exists());
}

/// What surrounds the caller must not matter: its umask, locale, working folder and temporary folder.
fn starts_well_under(umask: &str, locale: Option<&str>) {
    let folder = fresh_folder();
    let home = folder.path().join("home");
    let mut user = User::start(&home, "hold", |command| {
        let again = Command::new(command.get_program());
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let variables: Vec<_> =
            command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(again.get_program()).args(arguments);
        shell.envs(variables).env_remove("LC_ALL").env_remove("LANG");
        shell.envs(locale.map(|locale| ("LC_ALL", locale)));
        if nix::unistd::geteuid().is_root() {
            shell.current_dir("/root").env("TMPDIR", "/root");
        }
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        *command = shell;
    });
    let url = user.said();
    assert!(url.starts_with("postgres://"), "{url}");
    let settings = super::database::text(
        &url,
        "SELECT datcollate || ' ' || pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()",
    );
    assert_eq!(settings, "C UTF8");

    let mode = |path: &Path| path.metadata().expect("it is there").mode() & 0o777;
    let data = pgdata(&home);
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&home) & 0o066, 0, "nobody else lists or changes it");
    for secret in [home.join("owner.json"), data.with_file_name("password"), home.join("postgres.log")] {
        assert_eq!(mode(&secret), 0o600, "{}", secret.display());
    }
    assert!(!data.with_file_name("password-for-initdb").exists());
    user.dismiss();
    assert!(user.ended().success());
}

#[test]
fn an_open_umask_and_an_unknown_locale_do_not_matter() {
    starts_well_under("000", Some("xx_YY.UTF-8"));
}

#[test]
fn a_closed_umask_and_no_locale_do_not_matter() {
    starts_well_under("077", None);
}

#[test]
fn an_ordinary_user_runs_it_as_itself() {
    if !nix::unistd::geteuid().is_root() {
        return; // Then every other test of this file shows it.
    }
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    let folder = fresh_folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    // The checkout may lie where only root can enter.
    let reachable = folder.path().join("postgres");
    let pinned = crate::support::pinned_postgres().unwrap();
    assert!(Command::new("cp").arg("-a").args([&pinned, &reachable]).status().unwrap().success());
    let run_as = |uid: u32, gid: u32, home: &Path| {
        User::start(home, "hold", |command| {
            let mut other = Command::new(&program);
            other.args(command.get_args());
            other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            other.env(crate::support::REACHABLE_POSTGRES, &reachable);
            other.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            other.process_group(0).current_dir("/").uid(uid).gid(gid);
            *command = other;
        })
    };
    let home = folder.path().join("home");
    let mut user = run_as(nobody.uid.as_raw(), nobody.gid.as_raw(), &home);
    let url = user.said();
    Database::connect(&url).unwrap_or_else(|error| panic!("{error:#}: {url}"));
    assert_eq!(pgdata(&home).metadata().unwrap().uid(), nobody.uid.as_raw());
    user.dismiss();
    assert!(user.ended().success());

    // Root does not touch what belongs to another user, which could have put it there on purpose.
    let said = refusal(&cluster_options(&home));
    assert!(said.contains("belongs to user") && said.contains("HEADROOM_HOME"), "{said}");

    // Nobody at all: works or says why.
    let mut stranger = run_as(54_321, 54_321, &folder.path().join("stranger"));
    let said = stranger.said();
    assert!(said.contains("has no entry in the passwd database") && !said.contains('\n'), "{said}");
}

#[test]
fn a_state_folder_that_others_could_turn_is_refused() {
    let folder = fresh_folder();
    let link = folder.path().join("link");
    symlink("/var/tmp", &link).unwrap();
    assert!(refusal(&cluster_options(&link)).contains("is a symbolic link"));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(refusal(&cluster_options(&file)).contains("is no folder"));
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refusal(&cluster_options(&open)).contains("chmod go-w"));
    if nix::unistd::geteuid().is_root() {
        let shut = folder.path().join("shut");
        fs::create_dir(&shut).unwrap();
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).unwrap();
        let said = refusal(&cluster_options(&shut.join("home")));
        assert!(said.contains("cannot enter") && said.contains(&*shut.to_string_lossy()), "{said}");
    }
}

#[test]
fn missing_or_broken_binaries_are_named() {
    let folder = fresh_folder();
    let home = folder.path().join("home");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o755)).unwrap();
    let with = |binaries: &Path| ClusterOptions { binaries: Some(binaries.to_owned()), ..cluster_options(&home) };
    assert!(refusal(&with(&empty)).contains("--postgres-bin names the folder that has both"));
    let pinned = ClusterOptions { pinned: Some(empty.clone()), ..cluster_options(&home) };
    assert!(refusal(&pinned).contains("npm ci"));

    let script = |name: &str, text: &str, mode: u32| {
        let path = empty.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["postgres", "initdb"] {
        script(name, "#!/bin/sh\necho 'postgres (PostgreSQL) 9.6.24'\n", 0o755);
    }
    assert!(refusal(&with(&empty)).contains("9.6.24") && refusal(&with(&empty)).contains("too old"));
    script("initdb", "#!/bin/sh\necho 'initdb (PostgreSQL) 17.1'\n", 0o755);
    assert!(refusal(&with(&empty)).contains("both must be of one version"));
    script("postgres", "#!/bin/sh\necho 'libx.so: cannot open shared object file' >&2; exit 127\n", 0o755);
    assert!(refusal(&with(&empty)).contains("libx.so: cannot open shared object file"));
    script("postgres", "#!/nonexistent/loader\n", 0o755);
    assert!(refusal(&with(&empty)).contains("is missing or built for another C library"));
    script("postgres", "", 0o644);
    let said = refusal(&with(&empty));
    assert!(said.contains("may not run"), "{said}");
    poll(LONG, "the lock to be free again", || fs::File::open(home.join("start.lock")).ok()?.try_lock().ok());
}
