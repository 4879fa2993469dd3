//! The run's side: a thread that answers one request after the other.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use brunt_engine::Control;
use brunt_plan::plan::Plan;
use brunt_record::change::Author;

use super::{About, Answer, PATIENCE, Question, line, places, read_line};

/// The most clients at once; others are turned away.
const MOST_CLIENTS: usize = 16;

/// Listens for changes of the run, until it is dropped.
#[derive(Debug)]
pub struct CtlServer {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CtlServer {
    /// Listens for a run of `plan` with this id, which `control` changes.
    ///
    /// # Errors
    /// When there is no place for its socket.
    pub fn listen(plan: &Plan, run_id: &str, control: &Control) -> Result<Self> {
        Self::listen_at(places::own()?, plan, run_id, control)
    }

    fn listen_at(path: PathBuf, plan: &Plan, run_id: &str, control: &Control) -> Result<Self> {
        // A leftover of an earlier run of this process, or of a killed process with the same id.
        drop(fs::remove_file(&path));
        let listener = UnixListener::bind(&path).with_context(|| format!("cannot listen at {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let about = About {
            id: run_id.to_owned(),
            pid: std::process::id(),
            name: plan.origin.name.clone(),
            target: plan.target.url(),
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let attendant = ControlConnection { about, control: control.clone(), clients: Arc::default() };
        let ended = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("ctl".to_owned()).spawn(move || attendant.serve(&listener, &ended))?;
        Ok(Self { path, is_over, thread: Some(thread) })
    }
}

impl Drop for CtlServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread. If this fails, the thread is gone.
        let woken = UnixStream::connect(&self.path);
        drop(fs::remove_file(&self.path));
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Clone)]
struct ControlConnection {
    about: About,
    control: Control,
    clients: Arc<AtomicUsize>,
}

impl ControlConnection {
    fn serve(&self, listener: &UnixListener, is_over: &AtomicBool) {
        while let Ok((stream, _)) = listener.accept() {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            if self.clients.fetch_add(1, Ordering::Relaxed) >= MOST_CLIENTS {
                self.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let attendant = self.clone();
            // A silent client holds up no other. Without a thread it is turned away.
            let spawned = thread::Builder::new().name("ctl-client".to_owned()).spawn(move || {
                // A failing connection is the client's affair.
                let _ = attendant.attend(&stream);
                attendant.clients.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_err() {
                self.clients.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    fn attend(&self, stream: &UnixStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let answer = match read_line(stream) {
            Ok(question) => self.answer(question),
            Err(problem) => Answer::Refused(format!("expected a question as a line of JSON: {problem}")),
        };
        (&*stream).write_all(&line(&answer))
    }

    fn answer(&self, question: Question) -> Answer {
        match question {
            Question::Who => Answer::Run(self.about.clone()),
            Question::Change(action) => match self.control.ask(action, Author::Ctl) {
                Ok(change) => Answer::Changed(change),
                Err(refused) => Answer::Refused(refused.to_string()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use brunt_plan::plan::ProtocolOptions;
    use brunt_plan::target::Url;
    use brunt_record::change::Action;

    use super::*;
    use crate::ctl::ask;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("brunt-ctl-{}-{name}.sock", std::process::id()))
    }

    fn listen(path: PathBuf) -> CtlServer {
        let plan = Plan::of_calls(Url::parse("http://localhost:8080/").unwrap().target, ProtocolOptions::default());
        CtlServer::listen_at(path, &plan, "1d", &Control::default()).unwrap()
    }

    #[test]
    fn says_which_run_it_is_and_why_it_does_not_change() {
        let server = listen(place("who"));
        assert_eq!(fs::metadata(&server.path).unwrap().permissions().mode() & 0o777, 0o600);
        let Answer::Run(about) = ask(&server.path, &Question::Who).unwrap() else { panic!() };
        assert_eq!((about.id.as_str(), about.target.as_str()), ("1d", "http://localhost:8080/"));
        let refused = ask(&server.path, &Question::Change(Action::Pause)).unwrap();
        assert_eq!(refused, Answer::Refused("the load has not begun: ask again once it has".to_owned()));
        let path = server.path.clone();
        drop(server);
        assert!(!path.exists());
    }

    /// Garbage, a line without an end, silence and a client that is gone hold up nobody.
    #[test]
    fn strangers_harm_nobody() {
        let server = listen(place("strangers"));
        let silent: Vec<_> = (0..4).map(|_| UnixStream::connect(&server.path).unwrap()).collect();
        for garbage in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\xff\xfe\n", b"{\"change\":{\"rate\":\"x\"}}\n", &[b'x'; 10_000]]
        {
            let mut stream = UnixStream::connect(&server.path).unwrap();
            // The server may be through with it before all is said.
            let _ = stream.write_all(garbage);
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert!(answer.is_empty() || answer.starts_with("{\"refused\":\"expected a question"), "{answer}");
        }
        drop(UnixStream::connect(&server.path).unwrap());
        assert!(matches!(ask(&server.path, &Question::Who), Ok(Answer::Run(_))));
        drop(silent);
    }

    #[test]
    fn a_socket_that_was_left_over_is_no_hindrance() {
        let path = place("left");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let server = listen(path);
        assert!(matches!(ask(&server.path, &Question::Who), Ok(Answer::Run(_))));
    }
}
