//! What is answered to each request.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
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
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use super::access::{Access, Refusal};
use super::body::{Answer, Pace};
use crate::consequences::Routed;
use crate::page;
use crate::view::feed::Feed;

/// The most bytes of a request's body.
const MAX_BODY_BYTES: usize = 64 << 10;
/// The most requests that wait while an engine computes.
const MOST_WAITING: usize = 16;
/// The most routings that are kept.
const MOST_ROUTINGS: usize = 3;
/// The most pages that follow events at once.
const MOST_FOLLOWERS: usize = 32;
/// How often something is said to a page if nothing happens, so that it knows that the server lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(4);
/// The least time between two updates of a page.
const LEAST_PAUSE: Duration = Duration::from_millis(150);
/// The engines that are tried in turn where the chosen one does not serve what cut cables leave: the simplest first.
const FALLBACKS: [Engine; 3] = [Engine::Updn, Engine::Dfsssp, Engine::Nue];
/// The most routes between two hosts that are told.
const MOST_ROUTES: usize = 64;

/// Which routing is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutingAsked {
    scene: u64,
    engine: String,
    cuts: BTreeSet<u32>,
}

/// Which routes are wanted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutesAsked {
    scene: u64,
    engine: String,
    cuts: BTreeSet<u32>,
    from: u32,
    to: Option<u32>,
}

/// Why there is no answer: the status, and what to say.
struct NoAnswer(StatusCode, String);

/// Routings that were computed last.
type Kept = VecDeque<(RoutingAsked, Arc<Routed>)>;

/// Answers requests.
pub(super) struct Answers {
    feed: Arc<Feed>,
    access: Access,
    page: Bytes,
    policy: HeaderValue,
    /// One engine computes at a time.
    turn: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    followers: Arc<Semaphore>,
    kept: Mutex<Kept>,
}

impl Answers {
    pub(super) fn new(feed: Arc<Feed>, access: Access) -> Self {
        let (page, policy) = page::of_server();
        Self {
            feed,
            access,
            page: page.into(),
            policy: HeaderValue::from_str(&policy)
                .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'")),
            turn: Arc::new(Semaphore::new(1)),
            waiting: Arc::new(Semaphore::new(MOST_WAITING)),
            followers: Arc::new(Semaphore::new(MOST_FOLLOWERS)),
            kept: Mutex::default(),
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
        let scene = path.strip_prefix("/api/scene/").map(str::parse::<u64>);
        match (path.as_str(), scene) {
            ("/", _) if is_read => Ok(whole(StatusCode::OK, "text/html; charset=utf-8", self.page.clone())),
            ("/api/engines", _) if is_read => Ok(whole(StatusCode::OK, JSON, engines())),
            ("/api/events", _) if is_read => self.follow(pace),
            (_, Some(Ok(number))) if is_read => match self.feed.scene(number) {
                Some(told) => Ok(whole(StatusCode::OK, JSON, told.json.clone())),
                None => Err(gone(number)),
            },
            ("/api/routing", _) if request.method() == Method::POST => self.routing(request).await,
            ("/api/routes", _) if request.method() == Method::POST => self.routes(request).await,
            ("/" | "/api/engines" | "/api/events" | "/api/routing" | "/api/routes", _) | (_, Some(Ok(_))) => {
                Err(NoAnswer(StatusCode::METHOD_NOT_ALLOWED, "this is not asked so".to_owned()))
            }
            _ => Err(NoAnswer(StatusCode::NOT_FOUND, "there is nothing here; the page is at /".to_owned())),
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
            let mut seen = 0;
            loop {
                let piece = match feed.update(seen) {
                    Some((seq, update)) => {
                        seen = seq;
                        format!("data: {update}\n\n")
                    }
                    None => ":\n\n".to_owned(),
                };
                if sender.send(piece.into()).await.is_err() {
                    return;
                }
                tokio::time::sleep(LEAST_PAUSE).await;
                if *news.borrow_and_update() == seen {
                    // Either way the page is told something: what happened, or that nothing did.
                    let _something_or_nothing = tokio::time::timeout(SIGN_OF_LIFE, news.changed()).await;
                }
            }
        });
        let mut response = Response::new(Answer::Pieces(pieces, Arc::clone(pace)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        Ok(response)
    }

    async fn routing(&self, request: Request<Incoming>) -> Result<Response<Answer>, NoAnswer> {
        let asked: RoutingAsked = read(request).await?;
        let routed = self.routed(&asked).await?;
        let changed = if asked.cuts.is_empty() {
            None
        } else {
            let whole = self.routed(&RoutingAsked { cuts: BTreeSet::new(), ..asked.clone() }).await?;
            routed.changed_entries(&whole)
        };
        let fallback = self.fallback(&asked, &routed).await?;
        let tenths = |load: f64| (load * 10.0).round() / 10.0;
        let answer = json!({
            "engine": asked.engine,
            "why_not": routed.why_not,
            "loads": routed.loads.iter().flatten().map(|&load| tenths(load)).collect::<Vec<_>>(),
            "most": tenths(routed.most()),
            "cut_off": routed.cut_off,
            "changed": changed,
            "fallback": fallback,
        });
        Ok(whole(StatusCode::OK, JSON, answer.to_string()))
    }

    /// Which engine serves what is left where the one that was asked for does not.
    async fn fallback(&self, asked: &RoutingAsked, routed: &Routed) -> Result<Option<String>, NoAnswer> {
        if asked.cuts.is_empty() || routed.why_not.is_none() {
            return Ok(None);
        }
        for engine in
            FALLBACKS.map(|engine| engine.name().to_owned()).into_iter().filter(|it| *it != asked.engine)
        {
            let other = self.routed(&RoutingAsked { engine: engine.clone(), ..asked.clone() }).await?;
            if other.why_not.is_none() {
                return Ok(Some(engine));
            }
        }
        Ok(None)
    }

    async fn routes(&self, request: Request<Incoming>) -> Result<Response<Answer>, NoAnswer> {
        let RoutesAsked { scene, engine, cuts, from, to } = read(request).await?;
        let engine_name = engine.clone();
        let routed = self.routed(&RoutingAsked { scene, engine, cuts }).await?;
        let routes = routed.routes(from, to).map_err(|error| bad(&error.to_string()))?;
        let mut cables: BTreeMap<u32, u32> = BTreeMap::new();
        let mut reached = BTreeSet::new();
        for (to, hops) in &routes {
            reached.insert(*to);
            hops.iter()
                .filter_map(|&hop| routed.cable(hop))
                .for_each(|cable| *cables.entry(cable).or_default() += 1);
        }
        let hops = |hops: &[mapper_proto::map::PortRef]| {
            hops.iter().map(|hop| (hop.xbar, hop.port)).collect::<Vec<_>>()
        };
        let told = if to.is_some() { &routes[..routes.len().min(MOST_ROUTES)] } else { &[] };
        let answer = json!({
            "engine": engine_name,
            "routes": told.iter().map(|(_, route)| hops(route)).collect::<Vec<_>>(),
            "cables": cables.into_iter().collect::<Vec<_>>(),
            "reached": reached.len(),
        });
        Ok(whole(StatusCode::OK, JSON, answer.to_string()))
    }

    /// What an engine makes of a fabric: what is kept, or what it computes when its turn comes.
    async fn routed(&self, asked: &RoutingAsked) -> Result<Arc<Routed>, NoAnswer> {
        let Some(told) = self.feed.scene(asked.scene) else { return Err(gone(asked.scene)) };
        let engine: Engine = asked.engine.parse().map_err(|error| bad(&format!("{error}")))?;
        let Ok(_waits) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return Err(busy("too many ask for routes at once; try again"));
        };
        let Ok(turn) = Arc::clone(&self.turn).acquire_owned().await else {
            return Err(busy("the server ends"));
        };
        let kept =
            |kept: &Kept| kept.iter().find(|(of, _)| of == asked).map(|(_, routed)| Arc::clone(routed));
        if let Some(routed) = kept(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(routed);
        }
        let cuts = asked.cuts.clone();
        // The turn is over when the engine has ended, even if the client that asked is gone before.
        let computed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Routed::new(&told.fabric, engine, &cuts)
        });
        let routed = match computed.await {
            Ok(Ok(routed)) => Arc::new(routed),
            Ok(Err(error)) => return Err(bad(&error.to_string())),
            Err(_) => {
                return Err(NoAnswer(StatusCode::INTERNAL_SERVER_ERROR, "the engine failed".to_owned()));
            }
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((asked.clone(), Arc::clone(&routed)));
        while kept.len() > MOST_ROUTINGS {
            // What is not cut is compared with again and again.
            let first_cut =
                kept.iter().position(|(of, _)| !of.cuts.is_empty()).filter(|&at| at + 1 < kept.len());
            kept.remove(first_cut.unwrap_or(0));
        }
        Ok(routed)
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

fn bad(why: &str) -> NoAnswer {
    NoAnswer(StatusCode::BAD_REQUEST, why.to_owned())
}

fn busy(why: &str) -> NoAnswer {
    NoAnswer(StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
}

fn gone(scene: u64) -> NoAnswer {
    NoAnswer(StatusCode::GONE, format!("the fabric {scene} is not kept any more; load the page again"))
}
