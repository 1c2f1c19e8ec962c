import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Members that come and go while records are written: no partition has two owners, and every record reaches somebody. */
final class Storm {
    private static final int PARTITIONS = 6;

    private final String bootstrap, topic, group;
    private final Map<Integer, String> owners = new HashMap<>();
    private final Set<String> delivered = new HashSet<>(), written = new HashSet<>();
    private final Map<String, Member> members = new HashMap<>();
    private String mistake;

    private Storm(String bootstrap, String topic, String group) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.group = group;
    }

    /** `kind` is how members join: range, cooperative, uniform, pattern, or migrate: classic, then both, then classic again. */
    static void run(String bootstrap, String topic, String group, String kind) throws Exception {
        var storm = new Storm(bootstrap, topic, group);
        try {
            if (kind.equals("migrate")) storm.migrate();
            else storm.comeAndGo(kind);
            storm.untilDelivered();
        } finally {
            for (String name : List.copyOf(storm.members.keySet())) storm.leave(name);
        }
    }

    private void comeAndGo(String kind) throws Exception {
        join("a", kind);
        write();
        untilShared();
        join("b", kind);
        write();
        untilShared();
        join("c", kind);
        untilShared();
        write();
        leave("a");
        write();
        untilShared();
    }

    private void migrate() throws Exception {
        join("old-1", "cooperative");
        join("old-2", "cooperative");
        write();
        untilShared();
        join("new-1", "uniform");
        write();
        untilShared();
        leave("old-1");
        untilShared();
        join("old-3", "cooperative");
        write();
        untilShared();
        leave("new-1");
        write();
        untilShared();
    }

    private void join(String name, String kind) {
        members.put(name, new Member(name, kind));
    }

    private void leave(String name) throws Exception {
        members.remove(name).leave();
    }

    private void write() throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "linger.ms", 5);
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < 60; number++) {
                var where = producer.send(new ProducerRecord<>(topic, number % PARTITIONS, null, new byte[100])).get();
                synchronized (this) {
                    written.add(where.partition() + "@" + where.offset());
                }
            }
        }
    }

    private void untilShared() throws Exception {
        await("sharing among " + members.keySet(), () -> owners.size() == PARTITIONS && Set.copyOf(owners.values()).size() == members.size());
    }

    private void untilDelivered() throws Exception {
        await("delivery of every record", () -> delivered.containsAll(written));
    }

    private interface Condition {
        boolean holds();
    }

    private void await(String what, Condition condition) throws Exception {
        long deadline = System.nanoTime() + 40_000_000_000L;
        while (true) {
            synchronized (this) {
                Interop.check(mistake == null, mistake);
                if (condition.holds()) return;
                Interop.check(System.nanoTime() < deadline, what + " did not come about in 40 s; owners are " + owners);
                wait(100);
            }
        }
    }

    private synchronized void assigned(String member, Collection<TopicPartition> partitions) {
        for (var partition : partitions) {
            String owner = owners.put(partition.partition(), member);
            if (owner != null && !owner.equals(member)) mistake = partition + " was given to " + member + " while " + owner + " had it";
        }
        notifyAll();
    }

    private synchronized void revoked(String member, Collection<TopicPartition> partitions) {
        for (var partition : partitions) owners.remove(partition.partition(), member);
        notifyAll();
    }

    private synchronized void received(String member, int partition, long offset) {
        if (!member.equals(owners.get(partition))) mistake = member + " got " + partition + "@" + offset + " of " + owners.get(partition);
        delivered.add(partition + "@" + offset);
        notifyAll();
    }

    private final class Member implements ConsumerRebalanceListener {
        private final String name;
        private final AtomicBoolean leaving = new AtomicBoolean();
        private final Thread thread;

        Member(String name, String kind) {
            this.name = name;
            thread = new Thread(() -> consume(kind), name);
            thread.start();
        }

        void leave() throws Exception {
            leaving.set(true);
            thread.join();
        }

        private void consume(String kind) {
            boolean consumerProtocol = kind.equals("uniform") || kind.equals("pattern");
            Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", group, "client.id", name,
                "auto.offset.reset", "earliest", "auto.commit.interval.ms", 100));
            if (consumerProtocol) {
                config.put("group.protocol", "consumer");
            } else {
                config.putAll(Map.of("heartbeat.interval.ms", 200, "session.timeout.ms", 10000, "partition.assignment.strategy",
                    List.of(kind.equals("range") ? RangeAssignor.class : CooperativeStickyAssignor.class)));
            }
            try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                if (kind.equals("pattern")) consumer.subscribe(new SubscriptionPattern(topic.substring(0, topic.length() - 1) + ".*"), this);
                else consumer.subscribe(List.of(topic), this);
                while (!leaving.get())
                    for (var record : consumer.poll(Duration.ofMillis(100))) received(name, record.partition(), record.offset());
            } catch (RuntimeException failure) {
                synchronized (Storm.this) {
                    mistake = name + " failed: " + failure;
                    Storm.this.notifyAll();
                }
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assigned(name, partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            revoked(name, partitions);
        }
    }
}
