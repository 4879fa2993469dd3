"""A cart over gRPC that answers with what it was given, as far as metadata asks for nothing else:

x-status: N   the call ends with this status, with a message and a detail
x-sleep: S    it takes so many seconds
x-left: 1     the answer's sku says whether the call has a deadline, and how many whole seconds are left
x-trace: 1    the answer's sku is the call's traceparent

Prints its ports, without TLS and with it, and ends with its standard input."""

import sys
import time
from concurrent import futures

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from grpc_status import rpc_status

directory, certificate, key, compression = sys.argv[1:]
sys.path.insert(0, directory)
messages, services = grpc.protos_and_services("shop.proto")


def look_at(item, context):
    metadata = dict(context.invocation_metadata())
    if "x-status" in metadata:
        violation = error_details_pb2.BadRequest.FieldViolation(field="sku", description="unknown")
        detail = any_pb2.Any()
        detail.Pack(error_details_pb2.BadRequest(field_violations=[violation]))
        code = int(metadata["x-status"])
        status = status_pb2.Status(code=code, message="no sku: ü, 100%", details=[detail])
        context.abort_with_status(rpc_status.to_status(status))
    time.sleep(float(metadata.get("x-sleep", 0)))
    if "x-left" in metadata:
        item.sku = f"{round(context.time_remaining())} s left"
    if "x-trace" in metadata:
        item.sku = metadata.get("traceparent", "none")
    return item


class Cart(services.CartServicer):
    def Add(self, item, context):
        return look_at(item, context)

    def Watch(self, item, context):
        look_at(item, context)
        for number in range(item.count):
            item.big = number
            yield item

    def Fill(self, items, context):
        items = list(items)
        for item in items:
            look_at(item, context)
        return messages.Item(count=len(items), sku="".join(item.sku for item in items))

    def Chat(self, items, context):
        for item in items:
            yield look_at(item, context)


server = grpc.server(
    futures.ThreadPoolExecutor(8),
    compression=grpc.Compression.Gzip if compression == "gzip" else None,
)
services.add_CartServicer_to_server(Cart(), server)
healths = health.HealthServicer()
healths.set("", health_pb2.HealthCheckResponse.SERVING)
health_pb2_grpc.add_HealthServicer_to_server(healths, server)
names = ["shop.Cart", "grpc.health.v1.Health", reflection.SERVICE_NAME]
reflection.enable_server_reflection(names, server)
plain = server.add_insecure_port("127.0.0.1:0")
with open(key, "rb") as key, open(certificate, "rb") as certificate:
    credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
secure = server.add_secure_port("127.0.0.1:0", credentials)
server.start()
print(plain, secure, flush=True)
sys.stdin.read()
