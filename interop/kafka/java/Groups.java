import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A group member that reads at least a number of records, commits what it printed and leaves. */
final class Groups {
    private Groups() {}

    static void consume(String bootstrap, String topic, String group, String protocol, int atLeast) {
        Map<String, Object> config = Settings.with(Map.of("bootstrap.servers", bootstrap, "group.id", group, "group.protocol", protocol,
            "enable.auto.commit", false, "auto.offset.reset", "earliest", "max.poll.records", 50));
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + 40_000_000_000L;
            int read = 0;
            while (read < atLeast) {
                Interop.check(System.nanoTime() < deadline, "group " + group + " got " + read + " of " + atLeast + " records in 40 s");
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    Records.print(record);
                    read++;
                }
                consumer.commitSync();
            }
        }
    }
}
