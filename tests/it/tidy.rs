//! The invariants of the crate's shape, read from its sources.

use std::fs;
use std::path::{Path, PathBuf};

/// The map in `src/lib.rs`: each module with what it may import.
fn map() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    let row = |row: &str| {
        let (module, rest) = row.split_once("`]").expect("a name in a link");
        let imports = rest.trim_end_matches('|').rsplit('|').next().expect("a last column");
        let imports = if imports.contains("no harness module") { "" } else { imports };
        let names = imports.split(", ").map(|name| name.trim().trim_matches('`').to_owned());
        (module.to_owned(), names.collect())
    };
    rows.map(row).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found
}

/// The source of a module, tests left out: those may look at more.
fn sources(module: &str) -> Vec<(PathBuf, String)> {
    let single = root().join(format!("src/{module}.rs"));
    let paths = if single.exists() { vec![single] } else { files(&root().join("src").join(module), "rs") };
    let without_tests = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("readable source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
        (path, code)
    };
    let is_test =
        |path: &PathBuf| path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
    paths.into_iter().filter(|path| !is_test(path)).map(without_tests).collect()
}

#[test]
fn modules_import_only_what_the_map_allows() {
    let map = map();
    for (module, allowed) in &map {
        for (path, code) in sources(module) {
            let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            for imported in imports(&code) {
                let known = map.iter().any(|(name, _)| *name == imported);
                let fine = imported == *module || allowed.contains(&imported);
                assert!(fine || !known, "{} imports {imported}, the map in src/lib.rs does not say so", path.display());
            }
        }
    }
}

/// The modules behind `crate::name` and `crate::{name, other::thing}`.
fn imports(code: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            found.push(name(rest));
            continue;
        };
        found.extend(list.split('}').next().unwrap_or_default().split(',').map(|item| name(item.trim())));
    }
    found
}

#[test]
fn the_map_names_every_module() {
    let text = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let modules = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let mut modules: Vec<&str> = modules.collect();
    let map = map();
    let mut mapped: Vec<&str> = map.iter().map(|(name, _)| name.as_str()).collect();
    modules.sort_unstable();
    mapped.sort_unstable();
    assert_eq!(modules, mapped);
}

#[test]
fn only_their_own_files_name_the_two_clients_of_postgres() {
    for path in files(&root().join("src"), "rs") {
        let code = fs::read_to_string(&path).expect("readable source");
        let code: String = code.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let place = path.strip_prefix(root()).expect("inside the tree").display().to_string();
        if code.contains("sqlx::") {
            let fine = place.starts_with("src/server/store/sqlx") || place.starts_with("src/postgres/");
            assert!(fine || code.contains("mod sqlx;"), "{place} names sqlx");
        }
        if code.contains("tokio_postgres") {
            let fine = place.starts_with("src/server/store/pipelined") || place.starts_with("src/floor/");
            assert!(fine, "{place} names tokio-postgres");
        }
    }
}

/// The statements of a file, each on one line with single blanks.
fn statements(path: &str) -> Vec<String> {
    let code = fs::read_to_string(root().join(path)).expect("readable source");
    let literals = code.split('"').filter(|text| text.starts_with("SELECT ") || text.starts_with("INSERT "));
    literals.map(|text| text.replace('\\', " ").split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_floor_asks_postgres_what_the_server_asks() {
    let (floor, server) = (statements("src/floor/postgres.rs"), statements("src/server/store/mod.rs"));
    assert_eq!(floor.len(), 3, "{floor:#?}");
    assert_eq!(floor, server);
}

#[test]
fn the_harness_knows_no_framework() {
    for (module, _) in map().into_iter().filter(|(name, _)| name != "server") {
        for (path, code) in sources(&module) {
            let code: String =
                code.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            for word in ["express", "elysia", "fastify", "hono"] {
                let word_alone = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
                assert!(!word_alone(&code.to_lowercase()), "{} names {word}", path.display());
            }
        }
    }
}

#[test]
fn files_are_short_enough_to_hold_one_idea() {
    const LINES: usize = 450;
    for path in files(&root().join("src"), "rs") {
        let code = fs::read_to_string(&path).expect("readable source");
        let lines = code.split("#[cfg(test)]").next().unwrap_or_default().lines().count();
        assert!(lines <= LINES, "{} has {lines} lines besides its tests", path.display());
    }
}

#[test]
fn no_registry_host_is_named() {
    let mut paths = files(&root().join("src"), "rs");
    paths.extend(files(&root().join("tests"), "rs"));
    for name in
        ["README.md", "bench/METHODOLOGY.md", "bench/BIAS.md", "bench/FORMAT.md", "bench/peers/package-lock.json"]
    {
        paths.push(root().join(name));
    }
    let hosts = ["registry.", "npmjs.", "deb.debian.", "pypi."].map(|part| format!("{part}org"));
    for path in paths {
        let text = fs::read_to_string(&path).expect("readable");
        for host in &hosts {
            assert!(!text.contains(host.as_str()), "{} names {host}", path.display());
        }
    }
}
