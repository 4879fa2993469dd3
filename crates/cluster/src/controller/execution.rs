//! How a run is seen through once it has begun, and torn down.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use brunt_protocol::scenario::Value;

use super::control::{Control, Said};
use super::peer::Peer;
use super::progress::{Begun, InProgress, OwnStop};
use super::{LOOK, Order, Over, Startup};
use crate::words::{FromAgent, ToAgent};

impl Control {
    /// Carries an order out, and says what came of it.
    pub(super) async fn carry_out(&mut self, order: Order) {
        self.runs += 1;
        let run = self.runs;
        self.said.clear();
        self.working.clear();
        self.leave_lost_behind();
        let mut given = None;
        match self.begin(run, &order, &mut given).await {
            Err(error) => {
                self.tell_all(&ToAgent::Stop { run });
                self.settle(run, &mut given).await;
                let torn_down = match given {
                    Some(given) => self.tear_down(run, given).await,
                    None => Ok(()),
                };
                let error = match torn_down {
                    Ok(()) => error,
                    Err((agent, failed)) => error.and_teardown(agent, &failed),
                };
                // Whoever gave the order may have gone away.
                let _ = order.begun.send(Err(error));
            }
            Ok(begun) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let started_unix_ms = now.map_or(0, |since| since.as_millis() as u64);
                let agents = self.peers.iter().map(|peer| peer.agent.name.clone()).collect();
                let _ = order.begun.send(Ok(Startup { started_unix_ms, agents }));
                let over = self.see_through(run, &order, begun).await;
                let _ = order.over.send(over);
            }
        }
    }

    /// Sees a run through that has begun.
    async fn see_through(&mut self, run: u32, order: &Order, begun: Begun) -> Over {
        let on_lost = self.terms.as_ref().map(|terms| terms.on_lost).unwrap_or_default();
        let mut running = InProgress::new(run, begun, on_lost, &order.reports);
        let mut is_bus_gone = false;
        self.working.clear();
        self.stood_still = Duration::ZERO;
        while !running.is_over() {
            if !is_bus_gone && let Err(error) = self.step(LOOK).await {
                is_bus_gone = true;
                for peer in &mut self.peers {
                    peer.lost.get_or_insert(error.to_string());
                }
            }
            let now = self.now_ns();
            running.stood_still = self.stood_still;
            // Whoever is lost takes nothing over, so that this is known first.
            for (place, peer) in self.peers.iter().enumerate() {
                if peer.lost.is_some() {
                    running.gone(place);
                }
            }
            while let Some(said) = self.said.pop_front() {
                if let Said::Words(place, words) = said {
                    let offset = self.peers.get(place).and_then(|peer| peer.clock.offset());
                    running.take(place, words, offset, &order.stop, now);
                }
            }
            for (place, peer) in self.peers.iter().enumerate() {
                if let Some(reason) = &peer.lost {
                    running.lose(place, reason, on_lost, now, Some(peer.granted_ns));
                }
            }
            for place in std::mem::take(&mut running.said_their_last) {
                self.release_lost(place);
            }
            running.go_on_without(now);
            self.hand_out(&mut running);
            if (order.stop.is_stopped() || running.own_stop.is_some()) && !running.is_stopping {
                running.is_stopping = true;
                self.tell_all(&ToAgent::Stop { run });
            }
            if std::mem::take(&mut running.counts_changed) {
                for (place, counts) in running.counts_elsewhere() {
                    self.tell(place, &ToAgent::Elsewhere { run, counts });
                }
            }
        }
        self.granting = None;
        running.finish_lost();
        for (agent, peer) in running.begun.agents.iter_mut().zip(&self.peers) {
            // What was learnt during the run tells more than what was known when it began.
            agent.compare(peer.clock.offset(), running.begun.at);
        }
        if running.begun.plan.scenarios.is_some() {
            let given = std::mem::replace(&mut running.begun.given, Value::Nil);
            if let Err((agent, problem)) = self.tear_down(run, given).await {
                let problem = if agent.is_empty() { problem } else { format!("agent '{agent}': {problem}") };
                // What ended the run comes first.
                running.failed =
                    Some(running.failed.take().map_or(problem.clone(), |reason| format!("{reason}; {problem}")));
            }
        }
        Over {
            agents: running.begun.agents.into_iter().map(|agent| agent.part).collect(),
            status_names: running.status_names,
            redirected_to: running.redirected_to,
            failed: running.failed,
            lost_its_agents: running.own_stop == Some(OwnStop::AgentsLost),
        }
    }

    /// Tells agents what they take over from lost ones.
    fn hand_out(&mut self, running: &mut InProgress<'_>) {
        let run = running.run;
        for (place, mut work) in running.left_work.drain(..) {
            // All clocks were compared before the run began.
            let Some(offset) = self.peers.get(place).and_then(|peer| peer.clock.offset()) else { continue };
            work.at = offset.there(work.at);
            self.tell(place, &ToAgent::TakeOver { run, work: Box::new(work) });
        }
    }

    /// Runs the script's teardown on the first agent that is there and has nothing else to do.
    ///
    /// # Errors
    /// Why it failed, after the name of the agent; no name if there was none.
    async fn tear_down(&mut self, run: u32, given: Value<'static>) -> Result<(), (String, String)> {
        loop {
            let is_free = |(place, peer): &(usize, &Peer)| peer.lost.is_none() && !self.working.contains(place);
            let Some(place) = self.peers.iter().enumerate().find(is_free).map(|(place, _)| place) else {
                return Err((String::new(), "no agent was left to run the script's teardown".to_owned()));
            };
            self.tell(place, &ToAgent::Teardown { run, given: given.clone() });
            match self.await_teardown(run, place).await {
                // It is lost and never had the word.
                None => {}
                Some(Ok(())) => return Ok(()),
                Some(Err(problem)) => return Err((self.name(place), problem)),
            }
        }
    }

    /// What came of a teardown; none if the agent was lost before it had the word.
    async fn await_teardown(&mut self, run: u32, place: usize) -> Option<Result<(), String>> {
        loop {
            if let Err(error) = self.step(LOOK / 5).await {
                return Some(Err(error.to_string()));
            }
            while let Some(said) = self.said.pop_front() {
                match said {
                    Said::Words(of, FromAgent::TornDown { run: which, problem }) if of == place && which == run => {
                        return Some(problem.map_or(Ok(()), Err));
                    }
                    Said::Words(of, FromAgent::Failed { problem, .. }) if of == place => {
                        return Some(Err(problem.text));
                    }
                    _ => {}
                }
            }
            let peer = self.peers.get(place)?;
            if let Some(reason) = &peer.lost {
                let is_told = peer.link.is_acknowledged();
                return is_told.then(|| Err(format!("it was lost in the teardown: {reason}")));
            }
        }
    }
}
