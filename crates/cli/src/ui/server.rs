//! The server of the pages: HTTP/1.1, everything behind a token, GET for pages and POST for changes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::pages::{Answer, Pages};
use super::query::Query;
use crate::site::{ACCEPT_PAUSE, Body, Guard, HEAD, MOST_CONNECTIONS, Token, plain, with};

/// How many requests are worked on at once: each may hold a run in memory.
pub(super) const MOST_AT_ONCE: usize = 2;
/// Limit on a form, in bytes.
const MOST_FORM: usize = 4096;
/// How long answers that are under way have at the end.
const GRACE: Duration = Duration::from_secs(1);

/// The shared state of connections.
struct Site {
    guard: Guard,
    pages: Pages,
    room: Semaphore,
}

/// Serves until `ended` is done.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    token: Token,
    pages: Pages,
    mut ended: oneshot::Receiver<()>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let site = Arc::new(Site { guard: Guard::new(Some(token)), pages, room: Semaphore::new(MOST_AT_ONCE) });
    let connections = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        tokio::select! {
            biased;
            _ = &mut ended => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => attend(stream, &site, &connections, &room),
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    drop(listener);
    let _ = timeout(GRACE, connections.shutdown()).await;
}

fn attend(stream: TcpStream, site: &Arc<Site>, connections: &GracefulShutdown, room: &Arc<Semaphore>) {
    let Ok(place) = Arc::clone(room).try_acquire_owned() else { return };
    let site = Arc::clone(site);
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(request).await) }
    });
    let watcher = connections.watcher();
    tokio::spawn(async move {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD);
        // A failing connection is its browser's affair.
        drop(watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await);
        drop(place);
    });
}

impl Site {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = match self.guard.admit(head.uri.path(), &head.headers) {
            Ok(path) => path.to_owned(),
            Err(refusal) => return refusal,
        };
        let query = Query::parse(head.uri.query().unwrap_or(""));
        let is_change = path == "/delete";
        let form = match (&head.method, is_change) {
            (&Method::GET | &Method::HEAD, false) => None,
            (&Method::POST, true) => match self.form(&head.headers, body).await {
                Ok(form) => Some(form),
                Err(refusal) => return refusal,
            },
            _ => return not_allowed(if is_change { "POST" } else { "GET, HEAD" }),
        };
        let Ok(_place) = self.room.acquire().await else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "brunt is ending\n");
        };
        let site = Arc::clone(&self);
        let work = tokio::task::spawn_blocking(move || match form {
            None => site.pages.show(&path, &query),
            Some(form) => site.pages.delete(&form),
        });
        match work.await {
            Ok(answer) => respond(answer),
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "this page could not be made\n"),
        }
    }

    /// The submitted form, if it came from one of our pages.
    async fn form(&self, headers: &HeaderMap, body: Incoming) -> Result<Query, Response<Body>> {
        // Browsers name the sender's site (Fetch Metadata); other clients do not.
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if site.is_some_and(|site| site != b"same-origin") {
            return Err(plain(StatusCode::FORBIDDEN, "this form was sent by another site\n"));
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
        if !kind.starts_with("application/x-www-form-urlencoded") {
            return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected a form\n"));
        }
        let read = timeout(HEAD, Limited::new(body, MOST_FORM).collect()).await;
        let Ok(Ok(bytes)) = read else {
            return Err(plain(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long, or did not come\n"));
        };
        let form = Query::parse(&String::from_utf8_lossy(&bytes.to_bytes()));
        if !self.guard.is_token(form.get("token")) {
            return Err(plain(StatusCode::FORBIDDEN, "the form has not the token of this page\n"));
        }
        Ok(form)
    }
}

fn not_allowed(allowed: &'static str) -> Response<Body> {
    let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "this is not what the page is asked for\n");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn respond(answer: Answer) -> Response<Body> {
    let mut response = with(answer.content, answer.kind);
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    if let Some(policy) = answer.policy {
        headers.insert(http::header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    }
    if let Some(name) = answer.download.and_then(|name| HeaderValue::from_str(&name).ok()) {
        headers.insert(http::header::CONTENT_DISPOSITION, name);
    }
    if let Some(to) = answer.location {
        headers.insert(LOCATION, HeaderValue::from_static(to));
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    response
}
