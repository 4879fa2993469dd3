//! The layer alone, around a service that answers with all that it was asked.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use brunt_coalesce::{Coalesce, CoalesceLayer};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tokio::time::sleep;
use tower_layer::Layer as _;
use tower_service::Service;

use crate::requests::{Made, Settings};
use crate::rules::Seen;
use crate::world::{Answer, Received};

/// A service behind the layer.
pub struct Layered {
    service: Coalesce<Echo>,
    answer: Arc<Mutex<Answer>>,
}

/// Answers with the request that it was sent.
#[derive(Clone)]
struct Echo(Arc<Mutex<Answer>>);

type EchoFuture = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

impl Service<Request<Full<Bytes>>> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = EchoFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> EchoFuture {
        let answer = self.0.lock().unwrap().clone();
        Box::pin(async move {
            sleep(Duration::from_millis(10)).await;
            let seen = seen(request).await;
            let mut response = Response::builder().status(answer.status);
            for (name, value) in &answer.fields {
                response = response.header(*name, *value);
            }
            let all = serde_json::to_string(&(seen.start, seen.fields, seen.body)).unwrap();
            Ok(response.body(Full::from(all)).unwrap())
        })
    }
}

async fn seen(request: Request<Full<Bytes>>) -> Seen {
    let start = format!("{} {}", request.method(), request.uri());
    // What is no valid text is told apart by its bytes.
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let fields = request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let body = request.into_body().collect().await.unwrap().to_bytes().to_vec();
    Seen { start, fields, body }
}

/// The request as a server would make it of a client's bytes, if one would.
fn request(made: &Made) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::builder().method(made.method).uri(made.target.split('#').next()?);
    for (name, value) in &made.fields {
        request = request.header(name.as_str(), value.trim_matches([' ', '\t']));
    }
    request = request.header("x-request-id", made.client.as_str());
    if let Some(body) = made.body {
        request = request.header("content-length", body.len());
    }
    request.body(Full::from(made.body.unwrap_or(""))).ok()
}

impl Layered {
    pub fn new(settings: &Settings) -> Self {
        let mut layer = CoalesceLayer::new()
            .hold(Duration::from_millis(settings.hold_ms))
            .all_safe_methods(settings.all_safe_methods)
            .share_no_cache(settings.share_no_cache);
        for name in &settings.key_headers {
            layer = layer.key_header(name.parse().unwrap());
        }
        for name in &settings.ignored_headers {
            layer = layer.ignore_header(name.parse().unwrap());
        }
        for name in &settings.ignored_cookies {
            layer = layer.ignore_cookie(*name);
        }
        let answer = Arc::new(Mutex::new(Answer::default()));
        Self { service: layer.layer(Echo(Arc::clone(&answer))), answer }
    }

    pub fn answers_with(&self, answer: &Answer) {
        answer.clone_into(&mut self.answer.lock().unwrap());
    }

    /// What a client is told that asks after a while, and what the service would have said to it alone.
    pub async fn asks(&self, made: &Made, after: Duration) -> [Received; 2] {
        sleep(after).await;
        let status = self.answer.lock().unwrap().status;
        let Some(own) = request(made) else { return [Received::default(), Received::default()] };
        let alone = Received { status, seen: Some(seen(own.clone()).await) };
        let response = self.service.clone().call(own).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("the body ends").to_bytes();
        let (start, fields, body) = serde_json::from_slice(&body).unwrap();
        [Received { status, seen: Some(Seen { start, fields, body }) }, alone]
    }
}
