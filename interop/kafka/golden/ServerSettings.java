import java.util.TreeMap;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Every setting of Kafka's brokers, topics and groups: a line with its kind, name and default, separated by tabs; \N for none. */
public class ServerSettings {
    public static void main(String[] arguments) {
        print("broker", AbstractKafkaConfig.CONFIG_DEF);
        print("topic", LogConfig.configDefCopy());
        print("group", GroupConfig.CONFIG_DEF);
    }

    private static void print(String kind, ConfigDef settings) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(settings.configKeys()).values()) {
            if (key.internalConfig) continue;
            boolean none = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE || key.defaultValue == null;
            System.out.println(kind + "\t" + key.name + "\t" + (none ? "\\N" : ConfigDef.convertToString(key.defaultValue, key.type)));
        }
    }
}
