package headrace.interop;

import java.io.IOException;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.Map;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.RegistryConfig;

/** A program's `--name value` arguments, and the configuration all programs share. */
final class Options {
    private final Map<String, String> values = new HashMap<>();

    Options(String[] args) {
        // Dubbo's own threads would keep a program alive that failed to start.
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            System.exit(1);
        });
        for (int i = 0; i + 1 < args.length; i += 2) {
            if (!args[i].startsWith("--")) {
                throw new IllegalArgumentException("expected --name value, found " + args[i]);
            }
            values.put(args[i].substring(2), args[i + 1]);
        }
    }

    String get(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    int number(String name, int otherwise) {
        return values.containsKey(name) ? Integer.parseInt(values.get(name)) : otherwise;
    }

    boolean has(String name) {
        return values.containsKey(name);
    }

    static ApplicationConfig application(String name) {
        ApplicationConfig application = new ApplicationConfig(name);
        application.setQosEnable(false);
        application.setLogger("slf4j");
        return application;
    }

    /** The ZooKeeper of `--zookeeper host:port[?parameters]`, or none for direct calls. */
    RegistryConfig registry() throws IOException {
        if (!has("zookeeper")) {
            return new RegistryConfig("N/A");
        }
        RegistryConfig registry = new RegistryConfig("zookeeper://" + get("zookeeper", ""));
        registry.setTimeout(20_000);
        java.nio.file.Path cache = Files.createTempFile("dubbo-registry", ".cache");
        cache.toFile().deleteOnExit();
        registry.setFile(cache.toString());
        return registry;
    }
}
