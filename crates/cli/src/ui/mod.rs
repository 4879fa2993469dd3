//! `brunt ui`: the pages of kept runs, on an address of this machine. A thread of its own serves them; each request
//! opens the file anew, so that runs that other processes keep meanwhile are seen.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use tokio::sync::oneshot;

mod pages;
mod query;
mod server;

use pages::Pages;

use crate::site::Token;

/// Pages that are served, until it is dropped.
pub struct Ui {
    url: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ui {
    /// Serves the runs that are kept in `store` on `address`.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn start(address: SocketAddr, store: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr().context("cannot listen")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(server::MOST_AT_ONCE)
            .build()
            .context("cannot serve")?;
        // Others on this machine can reach loopback, too, and runs can be deleted here.
        let token = Token::random()?;
        let url = format!("http://{address}/{}/", token.as_str());
        let pages = Pages::new(store, token.as_str().to_owned());
        let (end, ended) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("ui".to_owned())
            .spawn(move || runtime.block_on(server::serve(listener, token, pages, ended)))
            .context("cannot start a thread")?;
        Ok(Self { url, end: Some(end), thread: Some(thread) })
    }

    /// Its URL, with the token.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
