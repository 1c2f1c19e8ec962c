"""Echo as a gRPC service on grpcio's asyncio server, with bytes as messages: `python -m bench.grpc_server PORT`."""

import asyncio
import signal
import sys

import grpc


async def echo(request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
    return request


async def serve(port: int) -> None:
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("headrace.interop.Echo", {"echo": handler})]
    )
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await server.stop(grace=5)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
