//! Requests of several tasks over one client's pool of connections, to a server in the same program.
use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use tokio::net::TcpListener;

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"ok"))))
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let requests: usize = std::env::args().nth(1).map_or(200, |text| text.parse().expect("a number"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)),
            );
        }
    });
    // A pool of its own for each task: the most that any change of the pool's lock could give.
    let is_shared = std::env::args().nth(2).is_none_or(|word| word != "own");
    let make = || Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let shared = make();
    let began = std::time::Instant::now();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let client = if is_shared { shared.clone() } else { make() };
            tokio::spawn(async move {
                for _ in 0..requests {
                    let answer =
                        client.get(format!("http://{address}/").parse().expect("an address")).await.expect("an answer");
                    answer.into_body().collect().await.expect("a body");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
    println!("{}", began.elapsed().as_micros() as f64 / (8 * requests) as f64);
}
