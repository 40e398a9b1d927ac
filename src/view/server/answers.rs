//! What is answered to each request.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use mapper_routing::engines::Engine;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use mapper_formats::page;

use super::access::{Access, Refusal};
use super::body::{Answer, Pace};
use super::engines::Engines;
use super::turns::Turns;
use crate::view::feed::{Feed, Seen};

/// The most bytes of a request's body.
const MAX_BODY_BYTES: usize = 64 << 10;
/// The most pages that follow events at once.
const MOST_FOLLOWERS: usize = 32;
/// How often something is said to a page if nothing happens, so that it knows that the server lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(4);
/// The least time between two updates of a page.
const LEAST_PAUSE: Duration = Duration::from_millis(150);

/// Why there is no answer: the status, and what to say.
pub(super) struct NoAnswer(pub(super) StatusCode, pub(super) String);

/// Answers requests.
pub(super) struct Answers {
    feed: Arc<Feed>,
    access: Access,
    page: Bytes,
    policy: HeaderValue,
    engines: Engines,
    followers: Arc<Semaphore>,
    /// One fabric of before is asked for at a time.
    recalls: Turns,
}

impl Answers {
    pub(super) fn new(feed: Arc<Feed>, access: Access) -> Self {
        let (page, policy) = page::of_server();
        Self {
            access,
            page: page.into(),
            policy: HeaderValue::from_str(&policy)
                .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'")),
            engines: Engines::new(Arc::clone(&feed)),
            followers: Arc::new(Semaphore::new(MOST_FOLLOWERS)),
            recalls: Turns::new(),
            feed,
        }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>, pace: &Arc<Pace>) -> Response<Answer> {
        let mut response = match self.try_answer(request, pace).await {
            Ok(response) => response,
            Err(NoAnswer(status, why)) => {
                let mut response = whole(status, "text/plain; charset=utf-8", why + "\n");
                if status == StatusCode::METHOD_NOT_ALLOWED {
                    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
                }
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
        pace.note_progress();
        response
    }

    async fn try_answer(
        &self,
        request: Request<Incoming>,
        pace: &Arc<Pace>,
    ) -> Result<Response<Answer>, NoAnswer> {
        let path = request.uri().path().to_owned();
        self.access.check(request.headers(), path != "/").map_err(refused)?;
        let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
        let is_post = request.method() == Method::POST;
        let told = |answer: Value| Ok(whole(StatusCode::OK, JSON, answer.to_string()));
        let scene = path.strip_prefix("/api/scene/").map(str::parse::<u64>);
        match (path.as_str(), scene) {
            ("/", _) if is_read => Ok(whole(StatusCode::OK, "text/html; charset=utf-8", self.page.clone())),
            ("/api/engines", _) if is_read => Ok(whole(StatusCode::OK, JSON, engines())),
            ("/api/events", _) if is_read => self.follow(pace),
            (_, Some(Ok(number))) if is_read => self.scene(number).await,
            ("/api/routing", _) if is_post => told(self.engines.routing(read(request).await?).await?),
            ("/api/routes", _) if is_post => told(self.engines.routes(read(request).await?).await?),
            ("/api/entries", _) if is_post => told(self.engines.entries(read(request).await?).await?),
            ("/" | "/api/engines" | "/api/events" | "/api/routing" | "/api/routes" | "/api/entries", _)
            | (_, Some(Ok(_))) => {
                Err(NoAnswer(StatusCode::METHOD_NOT_ALLOWED, "this is not asked so".to_owned()))
            }
            _ => Err(NoAnswer(StatusCode::NOT_FOUND, "there is nothing here; the page is at /".to_owned())),
        }
    }

    /// A fabric as the page draws it. One of before may have to be asked for first, one at a time.
    async fn scene(&self, number: u64) -> Result<Response<Answer>, NoAnswer> {
        let told = match self.feed.scene(number) {
            Some(told) => Some(told),
            None => {
                let feed = Arc::clone(&self.feed);
                self.recalls.next().await?.work(move || feed.recall(number)).await?
            }
        };
        match told {
            Some(told) => Ok(whole(StatusCode::OK, JSON, told.json.clone())),
            None => Err(gone(number)),
        }
    }

    /// Moments as they come, as server-sent events. A page that reads slowly misses those between, and gets the last.
    fn follow(&self, pace: &Arc<Pace>) -> Result<Response<Answer>, NoAnswer> {
        let Ok(place) = Arc::clone(&self.followers).try_acquire_owned() else {
            return Err(busy("too many pages are open; close some"));
        };
        pace.note_endless();
        let (sender, pieces) = mpsc::channel(1);
        let feed = Arc::clone(&self.feed);
        tokio::spawn(async move {
            let _place = place;
            let mut news = feed.follow();
            let mut seen = Seen::default();
            loop {
                news.mark_unchanged();
                let told: String =
                    feed.update(&mut seen).iter().map(|news| format!("data: {news}\n\n")).collect();
                let piece = if told.is_empty() { ":\n\n".to_owned() } else { told };
                if sender.send(piece.into()).await.is_err() {
                    return;
                }
                tokio::time::sleep(LEAST_PAUSE).await;
                // Either way the page is told something: what happened, or that nothing did.
                let _something_or_nothing = tokio::time::timeout(SIGN_OF_LIFE, news.changed()).await;
            }
        });
        let mut response = Response::new(Answer::Pieces(pieces, Arc::clone(pace)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        Ok(response)
    }
}

const JSON: &str = "application/json";

/// The engines that compute routes from a fabric alone: the quick and common ones first.
fn engines() -> String {
    let all = Engine::ALL.into_iter().filter(|&engine| engine != Engine::File);
    let all: Vec<_> =
        all.map(|engine| json!({ "name": engine.name(), "summary": engine.summary() })).collect();
    json!({ "engines": all }).to_string()
}

async fn read<T: for<'a> Deserialize<'a>>(request: Request<Incoming>) -> Result<T, NoAnswer> {
    // Pages of other sites can send forms without being asked, but not JSON.
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some(JSON) {
        return Err(NoAnswer(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "what is asked must be application/json".to_owned(),
        ));
    }
    let body =
        tokio::time::timeout(super::ASK_LIMIT, Limited::new(request.into_body(), MAX_BODY_BYTES).collect());
    let body = match body.await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            return Err(NoAnswer(StatusCode::PAYLOAD_TOO_LARGE, "too much is asked at once".to_owned()));
        }
        Err(_) => {
            return Err(NoAnswer(
                StatusCode::REQUEST_TIMEOUT,
                "the question did not come in time".to_owned(),
            ));
        }
    };
    serde_json::from_slice(&body).map_err(|error| bad(&error.to_string()))
}

fn whole(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Some(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn refused(why: Refusal) -> NoAnswer {
    match why {
        Refusal::ForeignHost => NoAnswer(
            StatusCode::MISDIRECTED_REQUEST,
            "this server answers by its address, and as localhost; name it so".to_owned(),
        ),
        Refusal::ForeignOrigin => {
            NoAnswer(StatusCode::FORBIDDEN, "pages of other sites are not answered".to_owned())
        }
        Refusal::NoToken => NoAnswer(
            StatusCode::UNAUTHORIZED,
            "this server wants its token, as `Authorization: Bearer`".to_owned(),
        ),
    }
}

pub(super) fn bad(why: &str) -> NoAnswer {
    NoAnswer(StatusCode::BAD_REQUEST, why.to_owned())
}

pub(super) fn busy(why: &str) -> NoAnswer {
    NoAnswer(StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
}

pub(super) fn gone(scene: u64) -> NoAnswer {
    NoAnswer(
        StatusCode::GONE,
        format!("there is no picture of then any more: the fabric {scene} is not kept"),
    )
}
