//! What is done with the bytes of a connection, from its first request to its last.

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use tokio::net::TcpStream;

use crate::server::error::ApiError;
use crate::server::reply::Reply;
use crate::server::routes::{Given, Looked, Shared, TOO_SLOW, Work};

use super::Stop;
use super::buffers::Input;
use super::chunks::Chunks;
use super::deadline::Deadline;
use super::head::{self, Framing, Head};
use super::response::{self, Manner};

/// Replies to pipelined requests are gathered up to this size before they are sent.
const GATHERED_BYTES: usize = 16 * 1024;

/// One connection.
pub(super) struct Connection<'s> {
    pub(super) stream: TcpStream,
    pub(super) input: Input,
    pub(super) output: Vec<u8>,
    pub(super) deadline: Deadline,
    pub(super) phase: Phase,
    request: Request,
    /// Whether this request is HEAD, as far as it has come.
    asks_head: bool,
    pub(super) shared: &'s Shared,
    pub(super) stop: &'s Stop,
}

/// What the connection waits for, each with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Head,
    Body,
    Answer,
    Write,
    Linger,
}

impl Phase {
    /// Whether nothing is owed to the client.
    pub(super) fn ends_at_stop(self) -> bool {
        matches!(self, Self::Idle | Self::Linger)
    }
}

/// The request at the start of the input, as far as it has come.
#[derive(Debug)]
enum Request {
    /// No whole head; looked through up to this place.
    Head { looked_at: usize },
    /// A head, and where its body ends.
    Length { head: Head, whole: usize },
    /// A head with its bytes, taken out of the input, and the chunks that have come.
    Chunked { head: Head, bytes: Vec<u8>, chunks: Chunks, data: Vec<u8> },
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
    /// Send what is gathered and end; the client may still be sending for as long as this phase lasts.
    End(Phase),
}

/// Why reading gave nothing.
#[derive(Debug)]
pub(super) enum Silence {
    Left,
    TooSlow,
    Stopped,
}

const NEW: Request = Request::Head { looked_at: 0 };

impl<'s> Connection<'s> {
    pub(super) fn new(stream: TcpStream, shared: &'s Shared, stop: &'s Stop) -> Self {
        Self {
            stream,
            input: Input::default(),
            output: Vec::new(),
            deadline: Deadline::new(shared.limits.idle_time),
            phase: Phase::Idle,
            request: NEW,
            asks_head: false,
            shared,
            stop,
        }
    }

    /// Serves until its client leaves, a limit ends it or the server stops.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        let mut step = Step::On;
        loop {
            step = match step {
                Step::On => self.step(),
                Step::Flush => {
                    self.flush().await?;
                    Step::On
                }
                Step::Read(phase) => {
                    self.flush().await?;
                    match self.fill(phase).await? {
                        Ok(()) => Step::On,
                        Err(silence) => return self.give_up(phase, &silence).await,
                    }
                }
                Step::Answer(work, manner) => {
                    // Earlier replies do not wait for this one.
                    self.flush().await?;
                    let reply = self.await_answer(work).await;
                    self.respond(&reply, manner)
                }
                Step::End(phase) => return self.end(phase).await,
            };
        }
    }

    async fn await_answer(&mut self, work: Work) -> Reply {
        self.enter(Phase::Answer);
        let mut answer = pin!(self.shared.answer(work));
        let answer = poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(answer),
            Poll::Pending => self.deadline.poll(context).map(|()| Err(ApiError::Unavailable(TOO_SLOW))),
        });
        answer.await.unwrap_or_else(Reply::from)
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
            Request::Length { whole, .. } if self.input.bytes().len() < *whole => Step::Read(Phase::Body),
            Request::Length { .. } | Request::Chunked { .. } => self.body(),
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
            Framing::Length(_) | Framing::Chunked => return self.open_body(head),
        };
        if bytes.len() < whole {
            let refused = self.permit(&head);
            self.request = Request::Length { head, whole };
            return refused.unwrap_or(Step::Read(Phase::Body));
        }
        self.whole(&head, whole)
    }

    /// A request that lies whole in the input.
    fn whole(&mut self, head: &Head, whole: usize) -> Step {
        let bytes = self.input.bytes();
        let looked = look(self.shared, head, bytes, &bytes[head.length..whole]);
        self.input.consume(whole);
        self.answer(looked, head)
    }

    /// A body in chunks, or one over the limit.
    fn open_body(&mut self, head: Head) -> Step {
        if let Some(refused) = self.permit(&head) {
            return refused;
        }
        if let Framing::Length(_) = head.framing {
            return self.refuse_body();
        }
        let bytes = self.input.bytes()[..head.length].to_vec();
        self.input.consume(head.length);
        self.request = Request::Chunked { head, bytes, chunks: Chunks::new(), data: Vec::new() };
        Step::On
    }

    /// Sends `100 Continue` to a client that waits for it, or refuses a request whose body would not be read.
    fn permit(&mut self, head: &Head) -> Option<Step> {
        let bytes = self.input.bytes();
        // Who has sent some of the body is not waiting.
        if !head.expects_continue || bytes.len() > head.length {
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
        None
    }

    /// More of a body, or all of it.
    fn body(&mut self) -> Step {
        let Request::Chunked { chunks, data, .. } = &mut self.request else { return self.end_of_body() };
        let Ok(used) = chunks.read(self.input.bytes(), |part| data.extend_from_slice(part)) else {
            return self.refuse(ApiError::BadRequest("the body is framed wrongly".to_owned()));
        };
        self.input.consume(used);
        if data.len() > self.shared.limits.body_bytes {
            return self.refuse_body();
        }
        if !chunks.is_done() {
            return Step::Read(Phase::Body);
        }
        self.end_of_body()
    }

    /// A request whose body has come to its end.
    fn end_of_body(&mut self) -> Step {
        match std::mem::replace(&mut self.request, NEW) {
            Request::Head { .. } => Step::On,
            Request::Length { head, whole } => self.whole(&head, whole),
            Request::Chunked { head, bytes, data, .. } => {
                let looked = look(self.shared, &head, &bytes, &data);
                self.answer(looked, &head)
            }
        }
    }

    /// Answers a request that has been looked at and taken out of the input.
    fn answer(&mut self, looked: Result<Looked, ApiError>, head: &Head) -> Step {
        self.request = NEW;
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
        if closes { Step::End(Phase::Linger) } else { Step::On }
    }

    /// Gathers the reply to a request after which nothing more can be read.
    fn refuse(&mut self, error: ApiError) -> Step {
        let manner = Manner { without_body: self.asks_head, closes: true, says_keep_alive: false };
        response::write(&mut self.output, &error.into(), manner);
        Step::End(Phase::Linger)
    }

    /// The same for a body over the limit: said at once, and the client has the time of a body to stop writing.
    fn refuse_body(&mut self) -> Step {
        self.refuse(ApiError::PayloadTooLarge(self.shared.limits.body_bytes));
        Step::End(Phase::Body)
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
        self.end(Phase::Linger).await
    }
}

/// Routes a whole request.
fn look(shared: &Shared, head: &Head, bytes: &[u8], body: &[u8]) -> Result<Looked, ApiError> {
    let given = Given { authorization: head.authorization(bytes), is_json: head.is_json, body };
    head.target(bytes).route().and_then(|route| shared.read(route, &given))
}
