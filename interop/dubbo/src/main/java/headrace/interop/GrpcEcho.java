package headrace.interop;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** Echo over gRPC, one connection, with UTF-8 text as the message: the least that gRPC can cost. */
final class GrpcEcho implements Echo {
    private static final MethodDescriptor.Marshaller<String> TEXT = new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(String value) {
            return new ByteArrayInputStream(value.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String parse(InputStream stream) {
            try {
                return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    };
    private static final MethodDescriptor<String, String> ECHO = MethodDescriptor.<String, String>newBuilder()
        .setType(MethodDescriptor.MethodType.UNARY)
        .setFullMethodName("headrace.interop.Echo/echo")
        .setRequestMarshaller(TEXT)
        .setResponseMarshaller(TEXT)
        .build();

    private final ManagedChannel channel;

    GrpcEcho(String address) {
        channel = ManagedChannelBuilder.forTarget(address).usePlaintext().build();
    }

    @Override
    public String echo(String text) {
        return ClientCalls.blockingUnaryCall(channel, ECHO, CallOptions.DEFAULT, text);
    }
}
