package headrace.interop;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.MethodConfig;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.rpc.service.GenericService;

/** Proxies of the services, found through ZooKeeper (`--zookeeper`) or called directly (`--url dubbo://host:port`). */
final class References {
    private final Options options;
    private final ApplicationConfig application = Options.application("java-consumer");
    private final RegistryConfig registry;

    References(Options options) throws IOException {
        this.options = options;
        this.registry = options.registry();
    }

    AllTypes allTypes() {
        ReferenceConfig<AllTypes> config = configure(new ReferenceConfig<>(), AllTypes.class);
        MethodConfig fire = new MethodConfig();
        fire.setName("fire");
        fire.setReturn(false);
        MethodConfig slow = new MethodConfig();
        slow.setName("slow");
        slow.setTimeout(500);
        slow.setRetries(0);
        config.setMethods(Arrays.asList(fire, slow));
        return config.get();
    }

    Echo echo() {
        return configure(new ReferenceConfig<Echo>(), Echo.class).get();
    }

    GenericService generic() {
        ReferenceConfig<GenericService> config = configure(new ReferenceConfig<>(), AllTypes.class);
        config.setGeneric("true");
        return config.get();
    }

    private <T> ReferenceConfig<T> configure(ReferenceConfig<T> config, Class<?> type) {
        config.setApplication(application);
        config.setRegistry(registry);
        config.setInterface(type);
        config.setTimeout(options.number("timeout", 10_000));
        config.setCheck(false);
        if (options.has("url")) {
            // Without a registry, the version and the group are the URL's and not the reference's.
            config.setUrl(options.get("url", "") + "/" + type.getName() + "?version=" + options.get("version", "")
                + "&group=" + options.get("group", ""));
        }
        if (options.has("version")) {
            config.setVersion(options.get("version", null));
        }
        if (options.has("group")) {
            config.setGroup(options.get("group", null));
        }
        if (options.has("tag")) {
            config.setTag(options.get("tag", null));
        }
        if (options.has("loadbalance")) {
            config.setLoadbalance(options.get("loadbalance", null));
        }
        if (options.has("heartbeat")) {
            config.setParameters(new HashMap<>(Map.of("heartbeat", options.get("heartbeat", ""))));
        }
        return config;
    }
}
