//! The protocols that come with brunt.

use brunt_grpc::Grpc;
use brunt_http1::Http1;
use brunt_llm::Llm;
use brunt_protocol::Registry;
use brunt_tcp::Tcp;
use brunt_thrift::Thrift;
use brunt_websocket::WebSocket;

/// The registry of the protocols that come with brunt, for [`main_with`](crate::main_with): HTTP/1.1 and
/// HTTP/2, language models, WebSocket, Thrift, gRPC and plain TCP.
pub fn built_in() -> Registry {
    let mut registry = Registry::default();
    // Registered last, asked first.
    registry.register(Tcp);
    registry.register(Grpc);
    registry.register(Thrift);
    registry.register(WebSocket);
    registry.register(Llm);
    registry.register(Http1);
    registry
}
