import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactions of the Java producer: committed and aborted ones, fencing, and a chain from topic to topic that goes on whatever happens. */
final class Transactions {
    private static final long CHAIN_SECONDS = 150;

    private Transactions() {}

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String id) {
        Map<String, Object> config = Settings.with(Map.of("bootstrap.servers", bootstrap, "transactional.id", id, "request.timeout.ms", 5000,
            "delivery.timeout.ms", 10000, "max.block.ms", 20000, "linger.ms", 0, "reconnect.backoff.max.ms", 200));
        var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        try {
            producer.initTransactions();
        } catch (KafkaException failed) {
            producer.close(Duration.ZERO);
            throw failed;
        }
        return producer;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String group, String isolation, int atOnce) {
        Map<String, Object> config = Settings.with(Map.of("bootstrap.servers", bootstrap, "group.id", group, "isolation.level", isolation,
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "max.poll.records", atOnce, "reconnect.backoff.max.ms", 200,
            "session.timeout.ms", 6000, "heartbeat.interval.ms", 1000));
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** 30 transactions of three records over the partitions of a topic, every third aborted; then a fenced producer's attempt. */
    static void write(String bootstrap, String topic, int partitions) {
        try (var producer = producer(bootstrap, topic)) {
            for (int number = 0; number < 30; number++) {
                producer.beginTransaction();
                String fate = number % 3 == 2 ? "aborted" : "committed";
                for (int i = 0; i < 3; i++)
                    producer.send(new ProducerRecord<>(topic, (number + i) % partitions, null, bytes(fate + "-" + number + "-" + i)));
                if (fate.equals("aborted")) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, bytes("zombie")));
            producer.flush();
            try (var successor = producer(bootstrap, topic)) {
                successor.beginTransaction();
                successor.send(new ProducerRecord<>(topic, 0, null, bytes("committed-by-the-successor")));
                successor.commitTransaction();
            }
            boolean fenced = false;
            try {
                producer.commitTransaction();
            } catch (ProducerFencedException expected) {
                fenced = true;
            }
            Interop.check(fenced, "a producer committed although another had taken its transactional id");
        }
    }

    /** Prints the values of a topic as a reader of the isolation level sees them, up to its end. */
    static void read(String bootstrap, String topic, String isolation) {
        try (var consumer = consumer(bootstrap, topic + isolation, isolation, 500)) {
            var partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            var ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + 40_000_000_000L;
            while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                Interop.check(System.nanoTime() < deadline, "the end of " + topic + " was not reached in 40 s");
                for (var record : consumer.poll(Duration.ofMillis(200)))
                    System.out.println(new String(record.value(), StandardCharsets.UTF_8));
            }
        }
    }

    /** Copies a topic to another, offsets and records in one transaction; starts anew after every failure until all is committed. */
    static void chain(String bootstrap, String from, String to, long expected) {
        long deadline = System.nanoTime() + CHAIN_SECONDS * 1_000_000_000L;
        while (true) {
            try {
                if (copy(bootstrap, from, to, expected, deadline)) return;
            } catch (KafkaException failed) {
                System.err.println("starting anew after " + failed);
            }
            Interop.check(System.nanoTime() < deadline, "the chain did not end within " + CHAIN_SECONDS + " s");
        }
    }

    private static boolean copy(String bootstrap, String from, String to, long expected, long deadline) {
        KafkaProducer<byte[], byte[]> producer = producer(bootstrap, from + "-chain");
        try (var consumer = consumer(bootstrap, from + "-chain", "read_committed", 20)) {
            consumer.subscribe(List.of(from));
            while (System.nanoTime() < deadline) {
                var records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    if (committed(consumer) == expected) return true;
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (var record : records) {
                    producer.send(new ProducerRecord<>(to, record.key(), record.value()));
                    offsets.put(new TopicPartition(from, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                System.out.println("committed " + records.count());
            }
            return false;
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    private static long committed(KafkaConsumer<byte[], byte[]> consumer) {
        if (consumer.assignment().isEmpty()) return -1;
        return consumer.committed(consumer.assignment()).values().stream().filter(each -> each != null)
            .collect(Collectors.summingLong(OffsetAndMetadata::offset));
    }
}
