//! The driver of a controller's state: the connection to the bus, and the clock.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use async_nats::{Client, Event, Message, Subscriber};
use brunt_engine::StopHandle;
use futures_util::StreamExt as _;
use futures_util::stream::{SelectAll, select_all};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::machine::Introduction;
use super::state::Controller;
use super::{AGAIN, ChosenAgents, ClusterError, ClusterOptions, Command, LAST_FLUSH, MOST_AT_ONCE, Notice};
use crate::agent::machine::HERE;
use crate::bus::{self, Bus, BusError};
use crate::post::BusEvent;
use crate::{random_number, random_session};

/// A connection to the bus, and a clock.
pub(super) struct Drive {
    prefix: String,
    is_private: bool,
    client: Client,
    incoming: SelectAll<Subscriber>,
    events: UnboundedReceiver<Event>,
    id: String,
    epoch: Instant,
}

impl Drive {
    /// Connects to the bus, as one whose id begins with `name`.
    pub(super) async fn connect(bus: &Bus, name: &str) -> Result<Self, ClusterError> {
        let (to_events, events) = unbounded_channel();
        let client = bus.connect(&format!("brunt controller {name}"), to_events).await?;
        let id = format!("{name}-{:x}", random_number());
        let ended = |error: &dyn std::fmt::Display| BusError::Ended { problem: error.to_string() };
        let mut incoming = Vec::new();
        for below in [format!("from.*.{id}"), format!("from.*.{HERE}"), format!("echo.{id}")] {
            incoming.push(client.subscribe(bus.subject(&below)).await.map_err(|e| ended(&e))?);
        }
        client.flush().await.map_err(|e| ended(&e))?;
        let (incoming, epoch) = (select_all(incoming), Instant::now());
        Ok(Self { prefix: bus.prefix.clone(), is_private: bus.is_private(), client, incoming, events, id, epoch })
    }

    /// Connects as [`Drive::connect`], and waits for a server as long as for agents.
    pub(super) async fn connect_within(
        bus: &Bus,
        terms: &ClusterOptions,
        stop: &StopHandle,
    ) -> Result<Self, ClusterError> {
        let (began, mut told) = (Instant::now(), false);
        loop {
            let error = match Self::connect(bus, &bus::token_of(&terms.name)).await {
                Err(ClusterError::Bus(error @ BusError::Unreachable { .. })) => error,
                came => return came,
            };
            let left = terms.patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(error.into());
            }
            if !std::mem::replace(&mut told, true) {
                (terms.notice)(&Notice::NoServer { problem: error.to_string(), left });
            }
            tokio::time::sleep(bus::jittered(AGAIN).min(left)).await;
            if stop.is_stopped() {
                return Err(ClusterError::Interrupted);
            }
        }
    }

    fn meeting(&self) -> Introduction<'_> {
        let server = bus::server_of(&self.client);
        let is_private = self.is_private;
        Introduction { prefix: &self.prefix, id: self.id.clone(), server, is_private, draw: random_session }
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// A controller that takes agents.
    pub(super) fn controller(&self, terms: ClusterOptions, stop: StopHandle) -> Controller {
        Controller::take_agents(self.meeting(), terms, stop, self.now())
    }

    /// A controller that finds out who is there.
    pub(super) fn list(&self, patience: Duration) -> Controller {
        Controller::list(self.meeting(), patience.as_nanos() as u64, self.now())
    }

    /// Drives a controller until it has nothing more to do.
    ///
    /// # Errors
    /// When it finds no agents, for a reason that is not theirs.
    pub(super) async fn until_over(&mut self, controller: &mut Controller) -> Result<(), ClusterError> {
        while !controller.is_over() {
            self.step(controller, &mut None).await;
        }
        controller.take_taken().map_or(Ok(()), |taken| taken.map(drop))
    }

    /// Drives a controller by orders, until it has released its agents. `taken` gets the result of taking them.
    pub(super) async fn serve(
        &mut self,
        controller: &mut Controller,
        orders: UnboundedReceiver<Command>,
        taken: &Sender<Result<ChosenAgents, ClusterError>>,
    ) {
        let mut orders = Some(orders);
        while !controller.is_over() {
            self.step(controller, &mut orders).await;
            if let Some(came) = controller.take_taken()
                && taken.send(came).is_err()
            {
                controller.order(Command::Release);
            }
        }
        // An absent bus is not waited for.
        let _ = tokio::time::timeout(LAST_FLUSH, self.client.flush()).await;
    }

    /// Handles events until the controller has to look after its agents again.
    async fn step(&mut self, controller: &mut Controller, orders: &mut Option<UnboundedReceiver<Command>>) {
        controller.advance(self.now());
        self.publish(controller).await;
        controller.take_notices().iter().for_each(controller.terms.notice);
        let patience = Duration::from_nanos(controller.patience_ns());
        let order = async {
            match orders {
                Some(orders) => orders.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = self.incoming.next() => self.receive(controller, message),
            Some(event) = self.events.recv() => {
                if let Some(event) = bus::event_of(event, &self.client) {
                    controller.bus_said(event);
                }
            }
            order = order => {
                if order.is_none() {
                    // No sender of orders is left.
                    *orders = None;
                }
                controller.order(order.unwrap_or(Command::Release));
            }
            () = tokio::time::sleep(patience) => {}
        }
        // Further events, without waiting.
        for _ in 0..MOST_AT_ONCE {
            tokio::select! {
                biased;
                message = self.incoming.next() => self.receive(controller, message),
                () = std::future::ready(()) => break,
            }
        }
    }

    fn receive(&self, controller: &mut Controller, message: Option<Message>) {
        match message {
            Some(message) => controller.receive(&message.subject, &message.payload, self.now()),
            None => controller.bus_said(BusEvent::Gone("the subscription is gone".to_owned())),
        }
    }

    async fn publish(&self, controller: &mut Controller) {
        for refused in bus::publish(&self.client, controller.take_posted()).await {
            controller.bus_said(refused);
        }
    }
}
