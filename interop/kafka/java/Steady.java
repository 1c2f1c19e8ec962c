import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends numbered records, one every 5 ms, and reads them beside that, whatever happens to the brokers meanwhile: every one must be
 * acknowledged, and arrive once and in order. It prints each number as it is acknowledged.
 */
final class Steady {
    static void run(String bootstrap, String topic, int count) throws Exception {
        var arrived = CompletableFuture.runAsync(() -> expect(bootstrap, topic, count));
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "acks", "all", "enable.idempotence", true,
            "request.timeout.ms", 5000, "delivery.timeout.ms", 100000);
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                String value = Integer.toString(number);
                sent.add(producer.send(new ProducerRecord<>(topic, value), (where, error) -> {
                    if (error == null) System.out.println(value);
                }));
                Thread.sleep(5);
            }
            for (var acknowledgement : sent) acknowledgement.get();
        }
        arrived.get(60, TimeUnit.SECONDS);
    }

    private static void expect(String bootstrap, String topic, int count) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest", "group.id", topic);
        long deadline = System.nanoTime() + 120_000_000_000L;
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            var only = List.of(new TopicPartition(topic, 0));
            consumer.assign(only);
            consumer.seekToBeginning(only);
            for (int next = 0; next < count;) {
                if (System.nanoTime() > deadline) throw new IllegalStateException(next + " of " + count + " records arrived in time");
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    if (!record.value().equals(Integer.toString(next)))
                        throw new IllegalStateException("at offset " + record.offset() + " came " + record.value() + " where " + next + " was due");
                    next++;
                }
            }
        }
    }
}
