//! Copies of Postgres's programs in the state folder, for accounts that cannot reach the original, and for originals that
//! may be replaced while they run.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::binaries::{Binaries, Unusable, is_noexec, probe};
use super::home::{Home, make_folder, remove};
use crate::interrupt::Interrupt;

/// Folders that make an installation self-contained: Postgres finds `lib` and `share` beside its `bin`.
const PARTS: [&str; 3] = ["bin", "lib", "share"];

/// How deep folders of an installation may lie; the time zones are the deepest at six.
const MAX_DEPTH: usize = 12;

/// Links that the package lists because package archives cannot hold links.
const LINK_LIST: &str = "pg-symlinks.json";

/// Puts the installation of `bin` where the account can run it, and checks that it can.
pub(super) fn place(bin: &Path, home: &Home, interrupt: &Interrupt) -> anyhow::Result<Binaries> {
    let root = bin.parent().with_context(|| format!("{} is no folder of programs", bin.display()))?;
    if let Some(part) = PARTS.iter().find(|part| !root.join(part).is_dir()) {
        bail!(
            "user {} may not run {}, and it cannot be copied without a folder `{part}` beside `bin`: \
             give another folder with --postgres-bin",
            home.account.name,
            bin.display()
        );
    }
    if is_noexec(home.path()) {
        return in_place(bin, root, home, interrupt);
    }
    let mark = mark_of(bin)?;
    if let Some(found) = find_copy(home, &mark)? {
        return usable(probe(&found.join("bin"), &home.account, interrupt));
    }
    let fresh = Home::unfinished(&home.path().join(format!("bin-{mark}")));
    remove(&fresh)?;
    make_folder(&fresh, 0o755)?;
    for part in PARTS {
        copy_tree(&root.join(part), &fresh.join(part), MAX_DEPTH, interrupt)?;
    }
    make_links(&root.join(LINK_LIST), &fresh)?;
    let mut binaries = usable(probe(&fresh.join("bin"), &home.account, interrupt))?;
    let place = home.path().join(format!("bin-{}-{mark}", binaries.version));
    fs::rename(&fresh, &place).with_context(|| format!("failed to move {} into place", fresh.display()))?;
    binaries.folder = place.join("bin");
    Ok(binaries)
}

/// The state folder's programs may not be run: an ordinary user runs the original instead.
fn in_place(bin: &Path, root: &Path, home: &Home, interrupt: &Interrupt) -> anyhow::Result<Binaries> {
    if home.account.drops_root {
        bail!(
            "{} lies on a file system mounted noexec and postgres must be copied there to run as user {}: \
             set HEADROOM_HOME to a folder elsewhere",
            home.path().display(),
            home.account.name
        );
    }
    make_links(&root.join(LINK_LIST), root)?;
    usable(probe(bin, &home.account, interrupt))
}

fn usable(probed: Result<Binaries, Unusable>) -> anyhow::Result<Binaries> {
    probed.map_err(|unusable| match unusable {
        Unusable::Denied(error) | Unusable::Other(error) => error,
    })
}

/// Eight digits that change with the original: where it is, its size and its time.
fn mark_of(bin: &Path) -> anyhow::Result<String> {
    let postgres = bin.join("postgres");
    let metadata = postgres.metadata().with_context(|| format!("failed to look at {}", postgres.display()))?;
    let seen = format!("{}\n{}\n{}.{}", postgres.display(), metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    let mut mark = String::new();
    for byte in &Sha256::digest(seen.as_bytes())[..4] {
        let _ = write!(mark, "{byte:02x}");
    }
    Ok(mark)
}

/// The finished copy with this mark.
fn find_copy(home: &Home, mark: &str) -> anyhow::Result<Option<PathBuf>> {
    for entry in fs::read_dir(home.path()).with_context(|| format!("failed to list {}", home.path().display()))? {
        let path = entry.with_context(|| format!("failed to list {}", home.path().display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("bin-") && name.ends_with(&format!("-{mark}")) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Removes copies that are not in use any more: each is 60 MB. Only under the start lock, with Postgres down.
pub(super) fn sweep_others(home: &Home, used: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(home.path()).with_context(|| format!("failed to list {}", home.path().display()))? {
        let path = entry.with_context(|| format!("failed to list {}", home.path().display()))?.path();
        let is_copy = path.file_name().unwrap_or_default().to_string_lossy().starts_with("bin-");
        if is_copy && !used.starts_with(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Copies a folder: files readable by everyone, programs executable, links as links.
fn copy_tree(from: &Path, to: &Path, depth: usize, interrupt: &Interrupt) -> anyhow::Result<()> {
    if depth == 0 {
        bail!("{} lies more than {MAX_DEPTH} folders deep in an installation of postgres", from.display());
    }
    interrupt.check()?;
    make_folder(to, 0o755)?;
    let failed = || format!("failed to copy {}", from.display());
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().with_context(failed)?;
        let failed = || format!("failed to copy {}", source.display());
        if kind.is_dir() {
            copy_tree(&source, &target, depth - 1, interrupt)?;
        } else if kind.is_symlink() && fs::read_link(&source).with_context(failed)?.components().count() == 1 {
            // A link to a neighbour, as between the names of a library: true in the copy as well.
            symlink(fs::read_link(&source).with_context(failed)?, &target).with_context(failed)?;
        } else {
            fs::copy(&source, &target).map_err(remedied).with_context(failed)?;
            let executable = source.metadata().with_context(failed)?.mode() & 0o111 != 0;
            let mode = if executable { 0o755 } else { 0o644 };
            fs::set_permissions(&target, Permissions::from_mode(mode)).with_context(failed)?;
        }
    }
    Ok(())
}

/// A full disk is the one failure to copy that whoever reads it can mend.
fn remedied(error: std::io::Error) -> anyhow::Error {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return anyhow::anyhow!("{error}: free some space, or set HEADROOM_HOME to a folder elsewhere");
    }
    error.into()
}

/// One link of the package's list, both ends from the package's folder on.
#[derive(Debug, Deserialize)]
struct ListedLink {
    /// The file that exists.
    source: String,
    /// The link to it.
    target: String,
}

/// Makes the links of the list that are missing under `root`. The installer normally does; not where scripts are off.
fn make_links(list: &Path, root: &Path) -> anyhow::Result<()> {
    let Ok(text) = fs::read(list) else { return Ok(()) };
    let links: Vec<ListedLink> =
        serde_json::from_slice(&text).with_context(|| format!("failed to read {}", list.display()))?;
    for link in links {
        let (Some(source), Some(target)) = (inside(&link.source), inside(&link.target)) else {
            bail!("{} lists a link outside of the package: {} -> {}", list.display(), link.target, link.source);
        };
        let path = root.join(&target);
        if path.symlink_metadata().is_ok() {
            continue;
        }
        // Every link of the list lies beside its file.
        if source.parent() != target.parent() {
            bail!("{} lists a link between folders: {} -> {}", list.display(), link.target, link.source);
        }
        let name = source.file_name().unwrap_or_default();
        symlink(name, &path).with_context(|| format!("failed to link {}", path.display()))?;
    }
    Ok(())
}

/// `native/lib/x` is `lib/x`; a path that climbs out is none.
fn inside(listed: &str) -> Option<PathBuf> {
    let path = Path::new(listed).strip_prefix("native").ok()?;
    path.components().all(|part| matches!(part, Component::Normal(_))).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_the_installer_dropped_are_made() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::write(root.join("lib/libx.so.1.2"), "library").unwrap();
        let list = root.join(LINK_LIST);
        let entry = |target: &str| format!(r#"[{{"source":"native/lib/libx.so.1.2","target":"{target}"}}]"#);
        fs::write(&list, entry("native/lib/libx.so.1")).unwrap();
        make_links(&list, root).unwrap();
        make_links(&list, root).unwrap();
        assert_eq!(fs::read_to_string(root.join("lib/libx.so.1")).unwrap(), "library");

        for outside in ["native/../x", "/etc/x", "native/bin/x", "other/lib/x"] {
            fs::write(&list, entry(outside)).unwrap();
            assert!(make_links(&list, root).is_err(), "{outside}");
        }
        make_links(&root.join("missing.json"), root).unwrap();
    }

    #[test]
    fn a_copy_is_readable_by_everyone_and_keeps_links() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/program"), "x").unwrap();
        fs::set_permissions(from.join("deep/program"), Permissions::from_mode(0o700)).unwrap();
        fs::write(from.join("text"), "x").unwrap();
        fs::set_permissions(from.join("text"), Permissions::from_mode(0o600)).unwrap();
        symlink("text", from.join("link")).unwrap();
        symlink("/etc/hostname", from.join("far")).unwrap();
        let to = root.path().join("to");
        copy_tree(&from, &to, MAX_DEPTH, &Interrupt::default()).unwrap();
        let mode = |name: &str| to.join(name).symlink_metadata().unwrap().mode() & 0o777;
        assert_eq!((mode("deep"), mode("deep/program"), mode("text")), (0o755, 0o755, 0o644));
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("text"));
        assert!(to.join("far").symlink_metadata().unwrap().is_file(), "a link out of the tree becomes a file");
        assert!(copy_tree(&from, &root.path().join("shallow"), 1, &Interrupt::default()).is_err());
    }
}
