import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What is new in the newest client library, asked of a broker with two data directories: offsets by topic id, in transactions too, with
 * both group protocols; moving a replica between directories; the quorum. Prints a line for each thing done.
 */
public class Newest {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(properties)) {
            admin.createTopics(List.of(new NewTopic("in", 1, (short) 1), new NewTopic("out", 1, (short) 1))).all().get();
            for (String protocol : List.of("classic", "consumer")) {
                transaction(bootstrap, protocol);
                Map<TopicPartition, OffsetAndMetadata> offsets =
                    admin.listConsumerGroupOffsets("group-" + protocol).partitionsToOffsetAndMetadata().get();
                System.out.println("committed " + protocol + " " + offsets.get(new TopicPartition("in", 0)).offset());
            }
            TopicPartition in = new TopicPartition("in", 0);
            ListOffsetsResult.ListOffsetsResultInfo pending =
                admin.listOffsets(Map.of(in, OffsetSpec.earliestPendingUpload())).partitionResult(in).get();
            System.out.println("pending " + pending.offset());
            QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
            System.out.println("quorum " + quorum.leaderId() + " " + quorum.voters().size());
            move(admin);
            admin.deleteConsumerGroups(List.of("group-classic")).all().get();
            try {
                admin.deleteConsumerGroups(List.of("nobody")).all().get();
            } catch (java.util.concurrent.ExecutionException refused) {
                System.out.println("refused " + refused.getCause().getMessage());
            }
        }
    }

    private static void transaction(String bootstrap, String protocol) throws Exception {
        Properties producing = new Properties();
        producing.put("bootstrap.servers", bootstrap);
        producing.put("transactional.id", "tx-" + protocol);
        Properties consuming = new Properties();
        consuming.put("bootstrap.servers", bootstrap);
        consuming.put("group.id", "group-" + protocol);
        consuming.put("group.protocol", protocol);
        consuming.put("auto.offset.reset", "earliest");
        consuming.put("enable.auto.commit", "false");
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer());
             KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int i = 0; i < 10; i++) producer.send(new ProducerRecord<>("in", "v" + i));
            producer.commitTransaction();
            consumer.subscribe(List.of("in"));
            ConsumerRecords<String, String> records = ConsumerRecords.empty();
            while (records.isEmpty()) records = consumer.poll(Duration.ofSeconds(1));
            consumer.commitSync();
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (TopicPartition partition : records.partitions()) {
                offsets.put(partition, new OffsetAndMetadata(7));
                producer.send(new ProducerRecord<>("out", "w"));
            }
            ConsumerGroupMetadata group = consumer.groupMetadata();
            producer.sendOffsetsToTransaction(offsets, group);
            producer.commitTransaction();
        }
    }

    private static void move(Admin admin) throws Exception {
        Map<String, LogDirDescription> directories = admin.describeLogDirs(Set.of(1)).allDescriptions().get().get(1);
        String target = null;
        for (Map.Entry<String, LogDirDescription> each : directories.entrySet()) {
            if (!each.getValue().replicaInfos().containsKey(new TopicPartition("in", 0))) target = each.getKey();
        }
        TopicPartitionReplica replica = new TopicPartitionReplica("in", 0, 1);
        admin.alterReplicaLogDirs(Map.of(replica, target)).all().get();
        while (!target.equals(admin.describeReplicaLogDirs(Set.of(replica)).all().get().get(replica).getCurrentReplicaLogDir())) {
            Thread.sleep(20);
        }
        System.out.println("moved");
    }
}
