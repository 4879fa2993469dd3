//! `brunt coalesce-check`: whether a server coalesces, and whether that is safe.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_model::secret::shown_url;
use brunt_proxy::Trust;
use http::Method;

use super::Exit;
use crate::args::coalesce_check::CoalesceCheck;
use crate::check::client::{Client, Probe};
use crate::check::probes::{Check, Meter};
use crate::check::text;
use crate::console;
use crate::wording::Settings;

pub fn run(args: &CoalesceCheck) -> Result<Exit> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    runtime.block_on(check(args))
}

async fn check(args: &CoalesceCheck) -> Result<Exit> {
    let trust = match &args.cacert {
        _ if args.insecure => Trust::Anyone,
        Some(path) => Trust::Authorities(path.clone()),
        None => Trust::System,
    };
    let client = Client::new(&trust, Duration::from_nanos(args.timeout), &args.headers)?;
    let first = Probe { method: Method::GET, uri: args.url.clone(), headers: Vec::new() };
    if let Err(error) = client.ask(&first).await {
        console::complain(&error.context("the target does not answer"), Settings::Flags);
        return Ok(Exit::NoAnswer);
    }
    let meter = match (&args.origin_count, &args.origin_header) {
        (Some(page), _) => Meter::page(&client, page.clone()).await?,
        (None, Some(name)) => Meter::Header(name.clone()),
        (None, None) => Meter::None,
    };
    let (url, seed) = (args.url.clone(), RandomState::new().hash_one(std::process::id()));
    let (connections, rounds, with_post) = (args.connections, args.rounds, args.with_post);
    let check = Check { client, url, meter, connections, rounds, with_post, seed };
    console::print(format!("brunt coalesce-check {}\n\n", shown_url(&args.url.to_string())).as_bytes())?;
    let findings = check.run().await?;
    console::print(text::findings(&findings, rounds).as_bytes())?;
    Ok(if findings.is_unsafe() { Exit::ThresholdFailed } else { Exit::Done })
}
