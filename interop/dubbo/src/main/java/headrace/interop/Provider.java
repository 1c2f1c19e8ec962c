package headrace.interop;

import java.io.IOException;
import java.net.ServerSocket;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.MetadataReportConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;

/**
 * A Java provider of AllTypes and Echo: `--zookeeper host:port --name N [--port P --version V --group G --token T --tag T
 * --metadata host:port]`. Prints `READY port` once exported and ends when its standard input does, or with `--wait signal` when it is told to.
 */
public final class Provider {
    private Provider() {
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        Options options = new Options(args);
        ProtocolConfig protocol = new ProtocolConfig("dubbo", options.has("port") ? options.number("port", 0) : freePort());
        if (options.has("heartbeat")) {
            protocol.setHeartbeat(options.number("heartbeat", 0));
        }
        ApplicationConfig application = Options.application("java-provider");
        RegistryConfig registry = options.registry();
        export(AllTypes.class, new AllTypesImpl(options.get("name", "java")), options, application, registry, protocol);
        export(Echo.class, text -> text, options, application, registry, protocol);
        System.out.println("READY " + protocol.getPort());
        System.out.flush();
        if (options.get("wait", "input").equals("signal")) {
            Thread.currentThread().join(); // for ever: the signal ends the program
        }
        while (System.in.read() >= 0) {
            // whoever started this program keeps the stream open as long as it is needed
        }
        System.exit(0);
    }

    private static <T> void export(Class<T> type, T service, Options options, ApplicationConfig application,
            RegistryConfig registry, ProtocolConfig protocol) {
        ServiceConfig<T> config = new ServiceConfig<>();
        config.setApplication(application);
        config.setRegistry(registry);
        config.setProtocol(protocol);
        config.setInterface(type);
        config.setRef(service);
        if (options.has("version")) {
            config.setVersion(options.get("version", null));
        }
        if (options.has("group")) {
            config.setGroup(options.get("group", null));
        }
        if (options.has("token")) {
            config.setToken(options.get("token", null));
        }
        if (options.has("tag")) {
            config.setTag(options.get("tag", null));
        }
        if (options.has("metadata")) {
            MetadataReportConfig report = new MetadataReportConfig();
            report.setAddress("zookeeper://" + options.get("metadata", ""));
            report.setSyncReport(true);
            config.setMetadataReportConfig(report);
        }
        config.export();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
