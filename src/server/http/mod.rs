//! HTTP/1.1 on a socket, by our own hand: what the kernel allows, and little more.
//!
//! hyper and axum cost about as much per request again as the kernel's share of it; the step between the two fronts is a
//! row of its own (`framework`). Parsing is httparse's.
//!
//! - `head`: a request's head; `chunks`: a body in chunks; `response`: replies as bytes
//! - `buffers`: what connections of a worker share; `deadline`: a limit that moves with every request
//! - here: one connection, from its first request to its last

mod buffers;
mod chunks;
mod deadline;
mod head;
mod response;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWrite as _;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::error::ApiError;
use super::reply::Reply;
use super::routes::{Given, Looked, Shared, Work};

use buffers::Input;
use chunks::Chunks;
use deadline::Deadline;
use head::{Framing, Head};
use response::Manner;

/// How much of an over-long body is read away before the connection ends, so that a client that is still writing can
/// read the answer instead of a reset connection.
const DRAINED_BYTES: u64 = 8 * 1024 * 1024;
/// How long a client may take to notice that the connection has ended.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// Replies to pipelined requests are gathered up to this size before they are sent.
const GATHERED_BYTES: usize = 16 * 1024;

/// Tells all connections of a worker to end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    is_set: AtomicBool,
    changed: Notify,
}

impl Stop {
    /// Ends every connection that waits for a request, and the others after their current one.
    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Completes once it is set, if it is called before.
    pub(super) fn wait(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

/// Serves a connection until its client leaves, a limit ends it or the server stops. Must be a task of its own.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>, stop: Arc<Stop>) {
    let mut changed = pin!(stop.wait());
    // Registers this task once; it is woken by the stop although nothing asks again.
    let _ = poll_fn(|context| Poll::Ready(changed.as_mut().poll(context))).await;
    let mut connection = Connection {
        stream,
        input: Input::default(),
        output: Vec::new(),
        deadline: Deadline::new(shared.limits.idle_time),
        phase: Phase::Idle,
        request: NEW,
        asks_head: false,
        continued: false,
        shared: &shared,
        stop: &stop,
    };
    // A client that breaks off is not a fault of the server.
    let _ = connection.run().await;
}

struct Connection<'s> {
    stream: TcpStream,
    input: Input,
    output: Vec<u8>,
    deadline: Deadline,
    phase: Phase,
    request: Request,
    /// Whether this request is HEAD, as far as it has come.
    asks_head: bool,
    /// Whether `100 Continue` has been sent for this request.
    continued: bool,
    shared: &'s Shared,
    stop: &'s Stop,
}

/// What the connection waits for, each with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Head,
    Body,
    Write,
    Linger,
}

impl Phase {
    /// Whether nothing is owed to the client.
    fn ends_at_stop(self) -> bool {
        matches!(self, Self::Idle | Self::Linger)
    }
}

/// The request at the start of the input, as far as it has come.
#[derive(Debug)]
enum Request {
    /// No whole head; looked through up to this place.
    Head { looked_at: usize },
    /// A head whose body ends here.
    Length { whole: usize },
    /// A head, taken out of the input, and the chunks that have come.
    Chunked { head: Vec<u8>, chunks: Chunks, data: Vec<u8> },
}

/// What is left of a body that is refused.
#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunked(Chunks),
}

/// What to do next.
#[derive(Debug)]
enum Step {
    /// Look on.
    On,
    /// Send what is gathered, then look on.
    Flush,
    /// Read more; the phase says what for.
    Read(Phase),
    /// Wait for this, then answer in this manner.
    Answer(Work, Manner),
    /// Read this away, then refuse it.
    Refuse(Rest),
    /// Send what is gathered and end.
    End,
}

/// Why reading gave nothing.
#[derive(Debug)]
enum Silence {
    Left,
    TooSlow,
    Stopped,
}

const NEW: Request = Request::Head { looked_at: 0 };

impl Connection<'_> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            match self.step() {
                Step::On => {}
                Step::Flush => self.flush().await?,
                Step::Read(phase) => {
                    self.flush().await?;
                    match self.fill(phase).await? {
                        Ok(()) => {}
                        Err(silence) => return self.give_up(phase, &silence).await,
                    }
                }
                Step::Answer(work, manner) => {
                    // Earlier replies do not wait for this one.
                    self.flush().await?;
                    let reply = self.shared.answer(work).await.unwrap_or_else(Reply::from);
                    if let Step::End = self.respond(&reply, manner) {
                        return self.end().await;
                    }
                }
                Step::Refuse(rest) => {
                    self.drain(rest).await?;
                    self.refuse(ApiError::PayloadTooLarge(self.shared.limits.body_bytes));
                    return self.end().await;
                }
                Step::End => return self.end().await,
            }
        }
    }

    /// Looks at what has arrived, and answers what can be answered at once.
    fn step(&mut self) -> Step {
        if self.output.len() >= GATHERED_BYTES {
            return Step::Flush;
        }
        match &mut self.request {
            Request::Head { .. } if self.input.is_empty() => Step::Read(Phase::Idle),
            Request::Head { looked_at } => {
                let bytes = self.input.bytes();
                // A head that comes byte by byte is parsed once a line, not once a byte.
                let has_new_line = *looked_at == 0 || bytes[*looked_at..].contains(&b'\n');
                if !has_new_line && bytes.len() < self.shared.limits.head_bytes {
                    *looked_at = bytes.len();
                    return Step::Read(Phase::Head);
                }
                self.head()
            }
            Request::Length { whole } if self.input.bytes().len() < *whole => Step::Read(Phase::Body),
            Request::Length { .. } => self.head(),
            Request::Chunked { .. } => self.chunks(),
        }
    }

    /// A request whose head may be whole.
    fn head(&mut self) -> Step {
        let bytes = self.input.bytes();
        self.asks_head = head::asks_head(bytes);
        let head = match head::parse(bytes, self.shared.limits.head_bytes) {
            Ok(Some(head)) => head,
            Ok(None) => {
                self.request = Request::Head { looked_at: bytes.len() };
                return Step::Read(Phase::Head);
            }
            Err(fault) => return self.refuse(fault.into()),
        };
        let most = self.shared.limits.body_bytes as u64;
        let whole = match head.framing {
            Framing::Length(length) if length <= most => head.length + usize::try_from(length).unwrap_or(usize::MAX),
            Framing::Length(_) | Framing::Chunked => return self.open_body(&head),
        };
        if bytes.len() < whole {
            self.request = Request::Length { whole };
            return self.permit(&head).unwrap_or(Step::Read(Phase::Body));
        }
        let looked = look(self.shared, &head, bytes, &bytes[head.length..whole]);
        self.input.consume(whole);
        self.answer(looked, &head)
    }

    /// A body in chunks, or one over the limit.
    fn open_body(&mut self, head: &Head) -> Step {
        if let Some(refused) = self.permit(head) {
            return refused;
        }
        let head_bytes = self.input.bytes()[..head.length].to_vec();
        self.input.consume(head.length);
        match head.framing {
            Framing::Length(length) => Step::Refuse(Rest::Length(length)),
            Framing::Chunked => {
                self.request = Request::Chunked { head: head_bytes, chunks: Chunks::new(), data: Vec::new() };
                Step::On
            }
        }
    }

    /// Sends `100 Continue` to a client that waits for it, or refuses a request whose body would not be read.
    fn permit(&mut self, head: &Head) -> Option<Step> {
        let bytes = self.input.bytes();
        // Who has sent some of the body is not waiting.
        if !head.expects_continue || self.continued || bytes.len() > head.length {
            return None;
        }
        let refusal = match (head.target(bytes).route(), head.framing) {
            (Err(error), _) => Some(error),
            (Ok(route), _) if route.takes_body() && !head.is_json => Some(ApiError::UnsupportedMediaType),
            (Ok(_), Framing::Length(length)) if length > self.shared.limits.body_bytes as u64 => {
                Some(ApiError::PayloadTooLarge(self.shared.limits.body_bytes))
            }
            (Ok(_), _) => None,
        };
        if let Some(error) = refusal {
            return Some(self.refuse(error));
        }
        self.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        self.continued = true;
        None
    }

    /// Chunks that have come.
    fn chunks(&mut self) -> Step {
        let Request::Chunked { head, chunks, data } = &mut self.request else { return Step::On };
        let Ok(used) = chunks.read(self.input.bytes(), |part| data.extend_from_slice(part)) else {
            return self.refuse(ApiError::BadRequest("the body is framed wrongly".to_owned()));
        };
        self.input.consume(used);
        if data.len() > self.shared.limits.body_bytes {
            let rest = std::mem::replace(chunks, Chunks::new());
            return Step::Refuse(Rest::Chunked(rest));
        }
        if !chunks.is_done() {
            return Step::Read(Phase::Body);
        }
        let (bytes, data) = (std::mem::take(head), std::mem::take(data));
        match head::parse(&bytes, self.shared.limits.head_bytes) {
            Ok(Some(head)) => {
                let looked = look(self.shared, &head, &bytes, &data);
                self.answer(looked, &head)
            }
            // It has been parsed before.
            Ok(None) | Err(_) => self.refuse(ApiError::Internal("a request head changed")),
        }
    }

    /// Answers a request that has been looked at and taken out of the input.
    fn answer(&mut self, looked: Result<Looked, ApiError>, head: &Head) -> Step {
        self.request = NEW;
        self.continued = false;
        let stops = self.stop.is_set() && self.input.is_empty();
        let manner = Manner {
            without_body: self.asks_head,
            closes: stops || !head.keeps_alive,
            says_keep_alive: head.is_http_10,
        };
        match looked {
            Ok(Looked::Waits(work)) => Step::Answer(work, manner),
            Ok(Looked::Answered(reply)) => self.respond(&reply, manner),
            Err(error) => self.respond(&error.into(), manner),
        }
    }

    /// Gathers a reply, and says whether it is the last.
    fn respond(&mut self, reply: &Reply, manner: Manner) -> Step {
        self.phase = Phase::Idle;
        let closes = manner.closes || reply.closes;
        response::write(&mut self.output, reply, Manner { closes, ..manner });
        if closes { Step::End } else { Step::On }
    }

    /// Gathers the reply to a request after which nothing more can be read.
    fn refuse(&mut self, error: ApiError) -> Step {
        let manner = Manner { without_body: self.asks_head, closes: true, says_keep_alive: false };
        response::write(&mut self.output, &error.into(), manner);
        Step::End
    }

    /// Ends a connection on which nothing more comes; a request that has begun may be owed an answer.
    async fn give_up(&mut self, phase: Phase, silence: &Silence) -> io::Result<()> {
        // Without a line end, bytes that can be no head have not been looked at.
        let bytes = self.input.bytes();
        let parsed = head::parse(bytes, self.shared.limits.head_bytes);
        if phase == Phase::Head {
            self.asks_head = head::asks_head(bytes);
        }
        match (phase, silence, parsed) {
            (Phase::Head, _, Err(fault)) => drop(self.refuse(fault.into())),
            (Phase::Head | Phase::Body, Silence::TooSlow, _) => drop(self.refuse(ApiError::RequestTimeout)),
            _ => return Ok(()),
        }
        self.end().await
    }

    /// Reads a body away, as far as is bearable.
    async fn drain(&mut self, mut rest: Rest) -> io::Result<()> {
        let mut drained = 0;
        while drained < DRAINED_BYTES {
            let bytes = self.input.bytes();
            let used = match &mut rest {
                Rest::Length(left) => {
                    let used = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= used as u64;
                    used
                }
                Rest::Chunked(chunks) => match chunks.read(bytes, |_| {}) {
                    Ok(used) => used,
                    Err(_) => return Ok(()),
                },
            };
            drained += used as u64;
            self.input.consume(used);
            let is_done = match &rest {
                Rest::Length(left) => *left == 0,
                Rest::Chunked(chunks) => chunks.is_done(),
            };
            if is_done || self.fill(Phase::Body).await?.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends the connection after its last reply. The client may still be sending, whether it may or not: closing at once
    /// would reset the connection under that reply.
    async fn end(&mut self) -> io::Result<()> {
        self.flush().await?;
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        let mut drained = 0;
        while drained < DRAINED_BYTES {
            let count = self.input.bytes().len();
            drained += count as u64;
            self.input.consume(count);
            if self.fill(Phase::Linger).await?.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Reads once, for as long as the phase may last.
    async fn fill(&mut self, phase: Phase) -> io::Result<Result<(), Silence>> {
        self.enter(phase);
        poll_fn(|context| match self.input.poll_fill(&mut self.stream, context) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(Err(Silence::Left))),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(Ok(()))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if phase.ends_at_stop() && self.stop.is_set() => Poll::Ready(Ok(Err(Silence::Stopped))),
            Poll::Pending => self.deadline.poll(context).map(|()| Ok(Err(Silence::TooSlow))),
        })
        .await
    }

    /// Sends what is gathered.
    async fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        // An allocator keeps buffers better than thousands of idle connections would.
        let output = std::mem::take(&mut self.output);
        let mut sent = 0;
        poll_fn(|context| {
            loop {
                match self.stream.try_write(&output[sent..]) {
                    Ok(count) => sent += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
                if sent == output.len() {
                    return Poll::Ready(Ok(()));
                }
                self.enter(Phase::Write);
                if self.stream.poll_write_ready(context)?.is_pending() {
                    return self.deadline.poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()));
                }
            }
        })
        .await
    }

    /// Sets the limit of a phase when it begins.
    fn enter(&mut self, phase: Phase) {
        if phase == self.phase && phase != Phase::Idle {
            return;
        }
        self.phase = phase;
        let limits = &self.shared.limits;
        self.deadline.set(match phase {
            Phase::Idle | Phase::Write => limits.idle_time,
            Phase::Head => limits.head_time,
            Phase::Body => limits.body_time,
            Phase::Linger => LINGER_TIME,
        });
    }
}

/// Routes a whole request.
fn look(shared: &Shared, head: &Head, bytes: &[u8], body: &[u8]) -> Result<Looked, ApiError> {
    let given = Given { authorization: head.authorization(bytes), is_json: head.is_json, body };
    head.target(bytes).route().and_then(|route| shared.read(route, &given))
}
