//! One thread's event loop over its listener and its connections.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::{Events, Interest, Poll, Token, Waker};
use rustls::{ServerConfig, ServerConnection};
use slab::Slab;

use super::alarm::Alarm;
use super::connection::{Buffers, Connection, Fate};
use super::listen::{Listener, Stream};
use super::quic::Quic;
use crate::http::Site;

const WAKE: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
const ALARM: Token = Token(usize::MAX - 2);
const DATAGRAMS: Token = Token(usize::MAX - 3);

/// Stands for the listener among the timers.
const ACCEPT: usize = usize::MAX;

/// How long to leave new connections alone when there are no descriptors for them.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Readiness events taken from the kernel at a time: enough for the call to cost nothing, and few
/// enough that what is due meanwhile is late by no more than a millisecond or so.
const EVENTS: usize = 256;

/// A worker, ready to run.
pub(super) struct Worker {
    poll: Poll,
    listener: Listener,
    /// HTTP/3, if it is spoken.
    quic: Option<Quic>,
    alarm: Alarm,
    tls: Option<Arc<ServerConfig>>,
    site: Site,
    buffers: Buffers,
    connections: Slab<Connection>,
    /// When which connection is to be looked at: at most one entry for each.
    timers: BTreeSet<(Duration, usize)>,
    /// Connections that gave way to others with work left to do.
    again: Vec<usize>,
    stopped: Arc<AtomicBool>,
}

impl Worker {
    /// Sets everything up that can fail; with it comes what wakes the worker to be stopped.
    pub(super) fn new(
        mut listener: Listener,
        mut quic: Option<Quic>,
        tls: Option<Arc<ServerConfig>>,
        site: Site,
        stopped: Arc<AtomicBool>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        poll.registry().register(listener.source(), LISTENER, Interest::READABLE)?;
        if let Some(quic) = &mut quic {
            quic.register(poll.registry(), DATAGRAMS)?;
        }
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        let worker = Self {
            poll,
            listener,
            quic,
            alarm,
            tls,
            site,
            buffers: Buffers::new(),
            connections: Slab::new(),
            timers: BTreeSet::new(),
            again: Vec::new(),
            stopped,
        };
        Ok((worker, waker))
    }

    /// Serves until told to stop. Fails only if the poll itself does.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.is_stopped() {
            self.wait(&mut events)?;
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    WAKE | ALARM => {}
                    DATAGRAMS => self.take_datagrams(),
                    Token(index) => {
                        let hung_up = event.is_read_closed() || event.is_error();
                        self.turn(index, event.is_readable() || hung_up, hung_up);
                    }
                }
            }
            self.run_again();
            self.run_due();
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let mut next = self.timers.first().map(|(due, _)| *due);
        let mut has_more = false;
        if let Some(quic) = &self.quic {
            next = [next, quic.next_wake()].into_iter().flatten().min();
            has_more |= quic.again;
        }
        if let Some(model) = &mut self.site.model {
            self.again.extend(model.advance(self.site.service.now()));
            next = [next, model.next_start()].into_iter().flatten().min();
        }
        let timeout = self.alarm.set(next, || self.site.service.now())?;
        has_more |= !self.again.is_empty();
        let timeout = if has_more { Some(Duration::ZERO) } else { timeout };
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Sleeps while the server as a whole is stalled. What happens meanwhile waits in the kernel.
    #[inline]
    fn sit_out_stall(&self) {
        let Some(stall) = self.site.service.stall else { return };
        while let Some(left) = stall.remaining(self.site.service.now()) {
            if self.is_stopped() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    fn accept(&mut self) {
        loop {
            self.sit_out_stall();
            match self.listener.accept() {
                Ok(stream) => self.admit(stream),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    // That one connection failed before it was ours.
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset => {}
                    // Out of descriptors or memory: the listener will not be told of again.
                    _ => {
                        self.timers.insert((self.site.service.now() + ACCEPT_PAUSE, ACCEPT));
                        return;
                    }
                },
            }
        }
    }

    fn admit(&mut self, stream: Stream) {
        let tls = match self.tls.clone().map(ServerConnection::new) {
            None => None,
            Some(Ok(mut tls)) => {
                // What may wait is bounded by how much is made at a time.
                tls.set_buffer_limit(None);
                Some(tls)
            }
            Some(Err(_)) => return,
        };
        let entry = self.connections.vacant_entry();
        let mut connection = Connection::new(stream, tls, self.site.service.speaks);
        if connection.register(self.poll.registry(), Token(entry.key())).is_ok() {
            entry.insert(connection);
            self.site.service.accepted();
        }
    }

    /// Lets one connection do what it can.
    #[inline]
    fn turn(&mut self, index: usize, readable: bool, hung_up: bool) {
        self.sit_out_stall();
        // An event may be for a connection that has closed since.
        let Some(connection) = self.connections.get_mut(index) else { return };
        self.site.connection = index;
        connection.note(readable, hung_up);
        let mut fate = connection.drive(&mut self.site, &mut self.buffers);
        if connection.watch(self.poll.registry(), Token(index)).is_err() {
            fate = Fate::Close;
        }
        let wake = if fate == Fate::Wait { connection.next_wake() } else { None };
        if wake != connection.wake {
            if let Some(before) = std::mem::replace(&mut connection.wake, wake) {
                self.timers.remove(&(before, index));
            }
            if let Some(due) = wake {
                self.timers.insert((due, index));
            }
        }
        match fate {
            Fate::Wait => {}
            Fate::Again => self.again.push(index),
            Fate::Close => {
                if let Some(mut connection) = self.connections.try_remove(index) {
                    connection.leave(&mut self.site);
                }
            }
        }
    }

    fn take_datagrams(&mut self) {
        self.sit_out_stall();
        if let Some(quic) = &mut self.quic {
            quic.readable(&mut self.site);
        }
    }

    fn run_again(&mut self) {
        if self.quic.as_ref().is_some_and(|quic| quic.again) {
            self.take_datagrams();
        }
        for index in std::mem::take(&mut self.again) {
            self.turn(index, false, false);
        }
    }

    fn run_due(&mut self) {
        let has_timers = self.quic.as_ref().is_some_and(|quic| quic.next_wake().is_some());
        if self.timers.is_empty() && !has_timers {
            return;
        }
        self.sit_out_stall();
        if let Some(quic) = &mut self.quic {
            quic.run_due(&mut self.site);
        }
        let now = self.site.service.now();
        while let Some(&(due, index)) = self.timers.first()
            && due <= now
        {
            self.timers.pop_first();
            if index == ACCEPT {
                self.accept();
                continue;
            }
            if let Some(connection) = self.connections.get_mut(index) {
                connection.wake = None;
            }
            self.turn(index, false, false);
        }
    }
}
