//! Reading: tolerant of a torn last line and of keys from the future, strict about everything else.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Life, RUN_FILE, Run, SCHEMA, SERVERS_FILE, WINDOWS_FILE, Window};

/// Everything a run left behind, with the verdicts on whole lives applied to their windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// `run.json`.
    pub run: Run,
    /// In the order measured.
    pub windows: Vec<Window>,
    /// In the order lived.
    pub lives: Vec<Life>,
    /// The last line of a file was cut off by a kill and is not among the rows.
    pub torn: bool,
}

/// The one key that every version of every row has.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

impl Record {
    /// Reads a record's folder.
    ///
    /// # Errors
    /// Names the file and line that cannot be read, or whose schema is newer than this program.
    pub fn read(dir: &Path) -> anyhow::Result<Self> {
        let run_path = dir.join(RUN_FILE);
        let text = contents(&run_path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                anyhow!("{} holds no record: it has no {RUN_FILE}: name a folder that `compare` wrote", dir.display())
            }
            _ => anyhow!("cannot read {}: {error}: name a folder that `compare` wrote", run_path.display()),
        })?;
        let run = parse(&text).with_context(|| run_path.display().to_string())?;
        let (windows, windows_torn) = lines(&dir.join(WINDOWS_FILE))?;
        let (lives, lives_torn) = lines(&dir.join(SERVERS_FILE))?;
        let mut record = Self { run, windows, lives, torn: windows_torn || lives_torn };
        record.apply_lives();
        Ok(record)
    }

    /// Voids the windows of lives that failed as a whole. Applying it twice changes nothing.
    fn apply_lives(&mut self) {
        for life in &self.lives {
            for window in self.windows.iter_mut().filter(|window| window.life == life.life) {
                for void in &life.voids {
                    if void.routes.contains(&window.route) {
                        window.invalidate(&void.reason);
                    }
                }
            }
        }
    }
}

/// Only of a regular file: a pipe would be waited for without end.
fn contents(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    fs::read(path)
}

/// All whole lines, and whether the last one was cut off. A file that is not there has none.
fn lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<(Vec<T>, bool)> {
    let text = match contents(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
        Err(error) => bail!("cannot read {}: {error}", path.display()),
    };
    let mut rows = Vec::new();
    let mut rest = text.split_inclusive(|&byte| byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = rest.next() {
        match parse(line) {
            Ok(row) => rows.push(row),
            // Only a kill in the middle of a write leaves a last line without its newline.
            Err(_) if rest.peek().is_none() && !line.ends_with(b"\n") => return Ok((rows, true)),
            Err(error) => return Err(error.context(format!("{} line {}", path.display(), index + 1))),
        }
    }
    Ok((rows, false))
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> anyhow::Result<T> {
    let Versioned { schema } = serde_json::from_slice(text)?;
    if schema > SCHEMA {
        bail!("schema {schema} is newer than {SCHEMA}, the newest this headroom reads: use the headroom that wrote it");
    }
    Ok(serde_json::from_slice(text)?)
}
