//! Writing: whole lines, flushed to disk one by one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use serde::Serialize;

use super::{LOGS_FOLDER, Life, REPORT_FILE, RUN_FILE, Record, Run, SERVERS_FILE, WINDOWS_FILE, Window};

/// Appends to a record. One at a time per record: the harness measures one run at a time.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    windows: File,
    servers: File,
}

impl Writer {
    /// Makes the folder and its `run.json`.
    ///
    /// # Errors
    /// Refuses a folder that holds a record already.
    pub fn create(dir: &Path, run: &Run) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).map_err(|error| failed("make the folder", dir, &error))?;
        if dir.join(RUN_FILE).exists() {
            bail!("{} holds a record already: choose another folder, or continue it with --resume", dir.display());
        }
        let writer = Self::open(dir)?;
        writer.replace_run(run)?;
        Ok(writer)
    }

    /// Opens an interrupted record; what it holds is read first, and a line cut off by the interruption is removed.
    pub fn resume(dir: &Path) -> anyhow::Result<(Self, Record)> {
        let record = Record::read(dir)?;
        for name in [WINDOWS_FILE, SERVERS_FILE] {
            let path = dir.join(name);
            mend_tail(&path).map_err(|error| failed("mend", &path, &error))?;
        }
        Ok((Self::open(dir)?, record))
    }

    fn open(dir: &Path) -> anyhow::Result<Self> {
        let append = |name: &str| {
            let path = dir.join(name);
            OpenOptions::new().create(true).append(true).open(&path).map_err(|error| failed("open", &path, &error))
        };
        let writer = Self { dir: dir.to_owned(), windows: append(WINDOWS_FILE)?, servers: append(SERVERS_FILE)? };
        writer.sync_folder()?;
        Ok(writer)
    }

    /// Where the output of a server's life goes.
    pub fn log_path(&self, server: &str, life: u32) -> anyhow::Result<PathBuf> {
        let logs = self.dir.join(LOGS_FOLDER);
        fs::create_dir_all(&logs).map_err(|error| failed("make the folder", &logs, &error))?;
        Ok(logs.join(format!("{life:04}-{server}.log")))
    }

    /// Adds a window; it is on disk when this returns.
    pub fn append_window(&mut self, window: &Window) -> anyhow::Result<()> {
        append(&mut self.windows, window).map_err(|error| failed("write", &self.dir.join(WINDOWS_FILE), &error))
    }

    /// Adds a server's life; it is on disk when this returns.
    pub fn append_life(&mut self, life: &Life) -> anyhow::Result<()> {
        append(&mut self.servers, life).map_err(|error| failed("write", &self.dir.join(SERVERS_FILE), &error))
    }

    /// Replaces `run.json` in one step: a reader sees the old one or the new one.
    pub fn replace_run(&self, run: &Run) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(run).context("cannot turn the run into JSON")?;
        text.push('\n');
        replace(&self.dir.join(RUN_FILE), text.as_bytes())?;
        self.sync_folder()
    }

    fn sync_folder(&self) -> anyhow::Result<()> {
        File::open(&self.dir).and_then(|folder| folder.sync_all()).map_err(|error| failed("flush", &self.dir, &error))
    }
}

/// Writes the report beside its record; its path.
pub fn write_report(dir: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let path = dir.join(REPORT_FILE);
    replace(&path, text.as_bytes())?;
    Ok(path)
}

/// Replaces a document that shows a record, whole or not at all.
///
/// # Errors
/// Names the file that cannot be written.
pub fn replace_document(path: &Path, text: &str) -> anyhow::Result<()> {
    replace(path, text.as_bytes())
}

fn append(file: &mut File, row: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(row)?;
    line.push(b'\n');
    // One write, so that a kill leaves at most the start of one line.
    file.write_all(&line)?;
    file.sync_data()
}

fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let beside = path.with_extension("new");
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, path)).map_err(|error| {
        // What is left of the attempt would only confuse; the error to tell is the first one.
        let _ = fs::remove_file(&beside);
        failed("write", path, &error)
    })
}

/// A last line without its newline is either whole (then it gets one) or cut off (then it goes).
fn mend_tail(path: &Path) -> io::Result<()> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let tail = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    if tail == text.len() {
        return Ok(());
    }
    let mut file = OpenOptions::new().append(true).open(path)?;
    if serde_json::from_slice::<serde_json::Value>(&text[tail..]).is_ok() {
        file.write_all(b"\n")?;
    } else {
        file.set_len(tail as u64)?;
    }
    file.sync_all()
}

fn failed(what: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space, then continue the run with --resume"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ": choose another folder with --out",
        _ => "",
    };
    anyhow!("cannot {what} {}: {error}{remedy}", path.display())
}
