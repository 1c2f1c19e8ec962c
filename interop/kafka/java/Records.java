import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Records between JSON lines and a topic: bytes in base64, a missing key, value or header value as null. */
final class Records {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Records() {}

    /** Writes standard input's records with the idempotent producer and checks every acknowledgement. */
    static void write(String bootstrap, String topic, String compression) throws Exception {
        Map<String, Object> config = Settings.with(Map.of(
            "bootstrap.servers", bootstrap, "compression.type", compression, "enable.idempotence", true, "linger.ms", 20,
            "max.request.size", 8 << 20, "delivery.timeout.ms", 30000, "request.timeout.ms", 10000));
        List<ProducerRecord<byte[], byte[]>> records = parse(topic);
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (var record : records) sent.add(producer.send(record));
            Map<Integer, Long> last = new HashMap<>();
            for (var acknowledgement : sent) {
                RecordMetadata where = acknowledgement.get();
                Long before = last.put(where.partition(), where.offset());
                Interop.check(before == null || where.offset() == before + 1,
                    "offsets of " + topic + "-" + where.partition() + " jumped from " + before + " to " + where.offset());
            }
        }
    }

    private static List<ProducerRecord<byte[], byte[]>> parse(String topic) throws IOException {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode json = JSON.readTree(line);
            List<Header> headers = new ArrayList<>();
            for (JsonNode header : json.get("headers")) headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
            records.add(new ProducerRecord<>(topic, json.get("partition").asInt(), json.get("timestamp").asLong(),
                bytes(json.get("key")), bytes(json.get("value")), headers));
        }
        return records;
    }

    /** Prints every record of the topics, from the beginning to the end that each partition has now. */
    static void read(String bootstrap, String[] topics) throws Exception {
        Map<String, Object> config = Settings.with(Map.of("bootstrap.servers", bootstrap, "enable.auto.commit", false, "check.crcs", true));
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : topics)
                consumer.partitionsFor(topic).forEach(info -> partitions.add(new TopicPartition(topic, info.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                Interop.check(System.nanoTime() < deadline, "the end of " + String.join(", ", topics) + " was not reached in 30 s");
                for (var record : consumer.poll(Duration.ofMillis(500))) print(record);
            }
        }
    }

    static void print(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode json = JSON.createObjectNode();
        json.put("topic", record.topic()).put("partition", record.partition()).put("offset", record.offset());
        json.put("timestamp", record.timestamp()).put("key", text(record.key())).put("value", text(record.value()));
        ArrayNode headers = json.putArray("headers");
        for (Header header : record.headers()) headers.addArray().add(header.key()).add(text(header.value()));
        System.out.println(json);
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
