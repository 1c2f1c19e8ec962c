import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Kafka Streams application with exactly_once_v2: it counts visits by page (a repartition and a count) and by the visitor's
 * country (a join with a table, a repartition and a count). No cache, so each visit adds one update to each output topic.
 * Usage: Visits application BOOTSTRAP STATE_DIRECTORY [CONSUMER_SETTING=VALUE …], or Visits follow BOOTSTRAP WATCHERS TOPIC ….
 * Either ends when its standard input does. What a test reads are lines of words with tabs between; others are the client's log.
 */
public final class Visits {
    private static final int THREADS = 2;

    private Visits() {}

    public static void main(String[] args) {
        List<String> rest = List.of(args).subList(2, args.length);
        if (args[0].equals("application")) application(args[1], rest.get(0), rest.subList(1, rest.size()));
        else follow(args[1], Integer.parseInt(rest.get(0)), rest.subList(1, rest.size()));
    }

    private static Topology topology() {
        var builder = new StreamsBuilder();
        var strings = Serdes.String();
        var visits = builder.<String, String>stream("visits");
        visits.groupBy((visitor, page) -> page, Grouped.with("page", strings, strings))
            .count(Materialized.as("visits-by-page"))
            .toStream().to("by-page", Produced.with(strings, Serdes.Long()));
        var countries = builder.<String, String>table("countries", Materialized.as("countries"));
        visits.join(countries, (page, country) -> country)
            .groupBy((visitor, country) -> country, Grouped.with("country", strings, strings))
            .count(Materialized.as("visits-by-country"))
            .toStream().to("by-country", Produced.with(strings, Serdes.Long()));
        return builder.build();
    }

    private static void application(String bootstrap, String state, List<String> settings) {
        var config = new Properties();
        config.put("application.id", "visits");
        config.put("bootstrap.servers", bootstrap);
        config.put("state.dir", state);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("num.stream.threads", THREADS);
        config.put("statestore.cache.max.bytes", 0);
        config.put("default.key.serde", Serdes.StringSerde.class.getName());
        config.put("default.value.serde", Serdes.StringSerde.class.getName());
        config.put("consumer.auto.offset.reset", "earliest");
        // A closed instance does not leave its group: the others wait for its session to end.
        config.put("consumer.session.timeout.ms", 10000);
        for (String setting : settings) {
            String[] halves = setting.split("=", 2);
            config.put("consumer." + halves[0], halves[1]);
        }
        var streams = new KafkaStreams(topology(), config);
        streams.setStateListener((now, before) -> System.out.println("state\t" + now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            System.out.println("died\t" + Thread.currentThread().getName() + "\t" + error + " caused by " + error.getCause());
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        awaitEnd();
        System.out.println("threads\t" + streams.metadataForLocalThreads().size());
        System.out.println("closed\t" + streams.close(Duration.ofSeconds(100)));
    }

    private static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {}
        } catch (IOException closed) {
            System.err.println("standard input: " + closed);
        }
    }

    /**
     * A plain consumer of committed records prints topic, key and count of each, all along. Watchers read the same in groups of
     * their own with polls of different lengths: what they read is nobody's concern, as long as they live.
     */
    private static void follow(String bootstrap, int watchers, List<String> topics) {
        for (int number = 0; number < watchers; number++) {
            int wait = 8 + number;
            daemon(() -> consume(bootstrap, topics, "watcher-" + wait, wait, record -> {}, () -> true));
        }
        var told = daemon(Visits::awaitEnd);
        consume(bootstrap, topics, "follow", 15, record ->
            System.out.println("counted\t" + record.topic() + "\t" + record.key() + "\t" + record.value()), told::isAlive);
    }

    private static Thread daemon(Runnable work) {
        var thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void consume(String bootstrap, List<String> topics, String group, int wait,
            Consumer<ConsumerRecord<String, Long>> use, BooleanSupplier more) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", group, "auto.offset.reset", "earliest",
            "isolation.level", "read_committed", "fetch.max.wait.ms", wait);
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), Serdes.Long().deserializer())) {
            consumer.subscribe(topics);
            while (more.getAsBoolean()) consumer.poll(Duration.ofMillis(100)).forEach(use);
        } catch (RuntimeException error) {
            error.printStackTrace();
            System.out.println("died\t" + group + "\t" + error + " caused by " + error.getCause());
            System.exit(1);
        }
    }
}
