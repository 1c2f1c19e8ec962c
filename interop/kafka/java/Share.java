import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a share group that finishes a number of records: the first is renewed before it is accepted, the second is released
 * at its first delivery, the third is rejected. Prints what it finished.
 */
final class Share {
    private Share() {}

    static void consume(String bootstrap, String topic, String group, String mode, int count) {
        Map<String, Object> config = Settings.with(Map.of("bootstrap.servers", bootstrap, "group.id", group,
            "share.acknowledgement.mode", "explicit", "share.acquire.mode", mode, "max.poll.records", 7));
        try (var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + 40_000_000_000L;
            int finished = 0;
            boolean renewed = false;
            while (finished < count) {
                Interop.check(System.nanoTime() < deadline, "share group " + group + " finished " + finished + " of " + count + " in 40 s");
                var records = consumer.poll(Duration.ofMillis(500));
                Interop.check(!mode.equals("record_limit") || records.count() <= 7, "a poll returned " + records.count() + " records");
                for (var record : records) {
                    boolean first = record.deliveryCount().orElse((short) 0) == 1;
                    if (record.offset() == 0 && !renewed) {
                        renewed = true;
                        consumer.acknowledge(record, AcknowledgeType.RENEW);
                    } else if (record.offset() == 1 && first) {
                        consumer.acknowledge(record, AcknowledgeType.RELEASE);
                    } else {
                        consumer.acknowledge(record, record.offset() == 2 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
                        Records.print(record);
                        finished++;
                    }
                }
                consumer.commitSync().values().forEach(error -> Interop.check(error.isEmpty(), "not acknowledged: " + error));
            }
            Interop.check(consumer.acquisitionLockTimeoutMs().isPresent(), "no lock timeout is known");
        }
    }
}
