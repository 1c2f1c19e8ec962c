import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.StringSerializer;

/** A walk through the Admin API: what must work works, what must be refused is refused with Kafka's own error. */
final class AdminChecks {
    private final Admin admin;
    private final String bootstrap;
    private final String topic;

    private AdminChecks(Admin admin, String bootstrap, String topic) {
        this.admin = admin;
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    static void run(String bootstrap, String topic) throws Exception {
        try (Admin admin = Admin.create(Settings.with(Map.of("bootstrap.servers", bootstrap)))) {
            var checks = new AdminChecks(admin, bootstrap, topic);
            checks.cluster();
            checks.creation();
            checks.description();
            checks.configs();
            checks.partitions();
            checks.deletingRecords();
            checks.logDirs();
            checks.producers();
            checks.deletion();
        }
    }

    private void cluster() throws Exception {
        var cluster = admin.describeCluster();
        Interop.check(!cluster.clusterId().get().isEmpty(), "the cluster has no id");
        Interop.check(cluster.nodes().get().size() == 1, "one node was expected, not " + cluster.nodes().get());
        Interop.check(cluster.controller().get() != null, "no controller is named");
    }

    private void creation() throws Exception {
        var wanted = new NewTopic(topic, 3, (short) 1).configs(Map.of("retention.ms", "3600000", "cleanup.policy", "compact"));
        var dry = admin.createTopics(List.of(wanted), new CreateTopicsOptions().validateOnly(true));
        dry.all().get();
        Interop.check(!admin.listTopics().names().get().contains(topic), "validateOnly created the topic");
        var made = admin.createTopics(List.of(wanted));
        Interop.check(made.numPartitions(topic).get() == 3, "CreateTopics answered another number of partitions");
        Interop.check(made.replicationFactor(topic).get() == 1, "CreateTopics answered another replication factor");
        Interop.check(!made.topicId(topic).get().equals(Uuid.ZERO_UUID), "CreateTopics answered no topic id");
        Config config = made.config(topic).get();
        Interop.check("3600000".equals(config.get("retention.ms").value()), "CreateTopics answered without the config it set");
        refused(admin.createTopics(List.of(wanted)).all(), TopicExistsException.class);
        refused(create("no spaces", 1, 1, Map.of()), InvalidTopicException.class);
        refused(create(topic + "-none", 0, 1, Map.of()), InvalidPartitionsException.class);
        refused(create(topic + "-three", 1, 3, Map.of()), InvalidReplicationFactorException.class);
        refused(create(topic + "-bad", 1, 1, Map.of("retention.ms", "soon")), InvalidConfigurationException.class);
        refused(create(topic + "-odd", 1, 1, Map.of("no.such.config", "1")), InvalidConfigurationException.class);
        admin.createTopics(List.of(new NewTopic(topic + "-assigned", Map.of(0, List.of(onlyNode()))))).all().get();
        admin.createTopics(List.of(new NewTopic(topic + "-default", Optional.empty(), Optional.empty()))).all().get();
    }

    private int onlyNode() throws Exception {
        return admin.describeCluster().nodes().get().iterator().next().id();
    }

    private KafkaFuture<Void> create(String name, int partitions, int replicas, Map<String, String> config) {
        return admin.createTopics(List.of(new NewTopic(name, partitions, (short) replicas).configs(config))).all();
    }

    private void description() throws Exception {
        TopicDescription described = described(topic);
        Interop.check(described.partitions().size() == 3, "DescribeTopics answered " + described.partitions().size() + " partitions");
        int node = onlyNode();
        described.partitions().forEach(partition -> {
            Interop.check(partition.leader() != null && partition.leader().id() == node, "a partition has no leader");
            Interop.check(partition.replicas().size() == 1 && partition.isr().size() == 1, "replicas and ISR must be one node");
        });
        var byId = admin.describeTopics(TopicCollection.ofTopicIds(List.of(described.topicId()))).allTopicIds().get();
        Interop.check(byId.get(described.topicId()).name().equals(topic), "the topic id leads to another topic");
        refused(admin.describeTopics(List.of(topic + "-absent")).allTopicNames(), UnknownTopicOrPartitionException.class);
        refused(admin.describeTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds(), UnknownTopicIdException.class);
        Interop.check(admin.listTopics().names().get().containsAll(Set.of(topic, topic + "-assigned", topic + "-default")), "ListTopics lacks topics");
    }

    private TopicDescription described(String name) throws Exception {
        return admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
    }

    private void configs() throws Exception {
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigEntry retention = config(resource).get("retention.ms");
        Interop.check(retention.value().equals("3600000") && retention.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG,
            "retention.ms should be this topic's own: " + retention);
        ConfigEntry segment = config(resource).get("segment.bytes");
        Interop.check(segment.value().equals("1073741824") && segment.isDefault(), "segment.bytes should be the default: " + segment);
        alter(resource, new ConfigEntry("retention.ms", "7200000"), OpType.SET);
        alter(resource, new ConfigEntry("cleanup.policy", "delete"), OpType.APPEND);
        eventually(resource, "7200000", "SET did not change retention.ms");
        Interop.check(config(resource).get("cleanup.policy").value().equals("compact,delete"), "APPEND did not add to cleanup.policy");
        alter(resource, new ConfigEntry("cleanup.policy", "compact"), OpType.SUBTRACT);
        alter(resource, new ConfigEntry("retention.ms", ""), OpType.DELETE);
        eventually(resource, "604800000", "DELETE did not bring the default back");
        Interop.check(config(resource).get("cleanup.policy").value().equals("delete"), "SUBTRACT did not take from cleanup.policy");
        var bad = Map.of(resource, (Collection<AlterConfigOp>) List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), OpType.SET)));
        refused(admin.incrementalAlterConfigs(bad).all(), InvalidConfigurationException.class);
        var absent = new ConfigResource(ConfigResource.Type.TOPIC, topic + "-absent");
        refused(admin.describeConfigs(List.of(absent)).all(), UnknownTopicOrPartitionException.class);

        var broker = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(onlyNode()));
        Config brokerConfig = config(broker);
        Interop.check(brokerConfig.get("log.dirs") != null && brokerConfig.get("log.dirs").isReadOnly(), "log.dirs should be read-only");
        var everyBroker = new ConfigResource(ConfigResource.Type.BROKER, "");
        alter(everyBroker, new ConfigEntry("log.retention.ms", "86400000"), OpType.SET);
        eventually(resource, "86400000", "a cluster-wide default did not reach the topic");
        alter(everyBroker, new ConfigEntry("log.retention.ms", ""), OpType.DELETE);
        eventually(resource, "604800000", "a deleted cluster-wide default still holds");
    }

    /** A change of configuration takes a moment to reach every part of the cluster. */
    private void eventually(ConfigResource resource, String retention, String otherwise) throws Exception {
        long deadline = System.nanoTime() + 10_000_000_000L;
        while (!config(resource).get("retention.ms").value().equals(retention)) {
            Interop.check(System.nanoTime() < deadline, otherwise);
            Thread.sleep(20);
        }
    }

    private Config config(ConfigResource resource) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource);
    }

    private void alter(ConfigResource resource, ConfigEntry entry, OpType operation) throws Exception {
        admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(entry, operation)))).all().get();
    }

    private void partitions() throws Exception {
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5)), new CreatePartitionsOptions().validateOnly(true)).all().get();
        Interop.check(described(topic).partitions().size() == 3, "validateOnly added partitions");
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        Interop.check(described(topic).partitions().size() == 5, "CreatePartitions did not add two");
        refused(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all(), InvalidPartitionsException.class);
        refused(admin.createPartitions(Map.of(topic + "-absent", NewPartitions.increaseTo(4))).all(), UnknownTopicOrPartitionException.class);
    }

    private void deletingRecords() throws Exception {
        var partition = new TopicPartition(topic, 4);
        try (var producer = new KafkaProducer<>(Settings.with(Map.of("bootstrap.servers", bootstrap)), new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < 20; i++) producer.send(new ProducerRecord<>(topic, 4, "key" + i, "value" + i)).get();
        }
        long low = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(7))).lowWatermarks().get(partition).get().lowWatermark();
        Interop.check(low == 7, "DeleteRecords answered low watermark " + low);
        refused(admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(21))).all(), OffsetOutOfRangeException.class);
        admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(-1))).all().get();
    }

    private void logDirs() throws Exception {
        int node = onlyNode();
        var dirs = admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node);
        Interop.check(dirs.size() == 1, "one log directory was expected, not " + dirs.keySet());
        var dir = dirs.values().iterator().next();
        Interop.check(dir.error() == null, "the log directory has an error: " + dir.error());
        var replica = dir.replicaInfos().get(new TopicPartition(topic, 4));
        Interop.check(replica != null && replica.offsetLag() == 0 && !replica.isFuture(), "DescribeLogDirs lacks " + topic + "-4");
        Interop.check(dir.totalBytes().isPresent() && dir.usableBytes().isPresent(), "DescribeLogDirs says nothing of the disk's size");
    }

    private void producers() throws Exception {
        var partition = new TopicPartition(topic, 4);
        var active = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
        Interop.check(active.size() == 1, "DescribeProducers should know one producer, not " + active.size());
        Interop.check(active.get(0).lastSequence() == 19, "DescribeProducers answered last sequence " + active.get(0).lastSequence());
    }

    private void deletion() throws Exception {
        Uuid id = described(topic + "-default").topicId();
        admin.deleteTopics(List.of(topic, topic + "-assigned")).all().get();
        admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        refused(admin.deleteTopics(List.of(topic)).all(), UnknownTopicOrPartitionException.class);
        Interop.check(!admin.listTopics().names().get().contains(topic), "a deleted topic is still listed");
    }

    private static void refused(KafkaFuture<?> future, Class<? extends Exception> expected) throws Exception {
        try {
            future.get();
        } catch (ExecutionException failure) {
            Interop.check(expected.isInstance(failure.getCause()), expected.getSimpleName() + " was expected, not " + failure.getCause());
            return;
        }
        throw new Interop.CheckFailed(expected.getSimpleName() + " was expected, but the call succeeded");
    }
}
