import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

/** Offset look-ups: earliest, latest, max (largest timestamp) or the first record at or after a time. */
final class Offsets {
    private Offsets() {}

    static void print(String bootstrap, String topic, String which) throws Exception {
        OffsetSpec spec = switch (which) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(Long.parseLong(which));
        };
        try (Admin admin = Admin.create(Settings.with(Map.of("bootstrap.servers", bootstrap)))) {
            Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
            for (var partition : admin.describeTopics(java.util.List.of(topic)).allTopicNames().get().get(topic).partitions())
                wanted.put(new TopicPartition(topic, partition.partition()), spec);
            Map<Integer, Long> found = new TreeMap<>();
            admin.listOffsets(wanted).all().get().forEach((partition, info) -> found.put(partition.partition(), info.offset()));
            StringBuilder json = new StringBuilder("{");
            found.forEach((partition, offset) ->
                json.append(json.length() > 1 ? ", " : "").append('"').append(partition).append("\": ").append(offset));
            System.out.println(json.append('}'));
        }
    }
}
