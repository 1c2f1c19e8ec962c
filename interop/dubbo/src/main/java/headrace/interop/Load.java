package headrace.interop;

import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Calls Echo as fast as it answers: `--url dubbo://host:port`, `--zookeeper host:port` or `--grpc host:port`, with
 * `--bytes` per payload, `--concurrent` callers, for `--seconds` after `--warmup` seconds. Prints one line of JSON.
 */
public final class Load {
    private static final int MAX_SAMPLES = 2_000_000;

    private Load() {
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        Options options = new Options(args);
        Echo service = options.has("grpc") ? new GrpcEcho(options.get("grpc", "")) : new References(options).echo();
        String payload = "x".repeat(options.number("bytes", 16));
        int concurrent = options.number("concurrent", 1);
        measure(service, payload, concurrent, options.number("warmup", 5));
        System.out.println(measure(service, payload, concurrent, options.number("seconds", 10)));
        System.exit(0);
    }

    private static String measure(Echo service, String payload, int concurrent, int seconds)
            throws InterruptedException {
        long[][] samples = new long[concurrent][];
        AtomicLong failures = new AtomicLong();
        CountDownLatch ready = new CountDownLatch(concurrent);
        Thread[] threads = new Thread[concurrent];
        long[] start = new long[1];
        CountDownLatch go = new CountDownLatch(1);
        for (int t = 0; t < concurrent; t++) {
            int index = t;
            threads[t] = new Thread(() -> {
                long[] own = new long[MAX_SAMPLES / concurrent];
                int count = 0;
                ready.countDown();
                try {
                    go.await();
                } catch (InterruptedException interrupted) {
                    return;
                }
                long end = start[0] + seconds * 1_000_000_000L;
                long before = System.nanoTime();
                while (before < end && count < own.length) {
                    try {
                        if (service.echo(payload).length() != payload.length()) {
                            failures.incrementAndGet();
                        }
                    } catch (RuntimeException error) {
                        failures.incrementAndGet();
                    }
                    long after = System.nanoTime();
                    own[count++] = after - before;
                    before = after;
                }
                samples[index] = Arrays.copyOf(own, count);
            });
            threads[t].start();
        }
        ready.await();
        start[0] = System.nanoTime();
        go.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        double elapsed = (System.nanoTime() - start[0]) / 1e9;
        long[] all = Arrays.stream(samples).flatMapToLong(Arrays::stream).sorted().toArray();
        return String.format("{\"calls\": %d, \"failures\": %d, \"seconds\": %.3f, \"calls_per_second\": %.1f, "
            + "\"p50_us\": %.1f, \"p99_us\": %.1f, \"bytes\": %d, \"concurrent\": %d}",
            all.length, failures.get(), elapsed, all.length / elapsed, percentile(all, 0.50), percentile(all, 0.99),
            payload.length(), concurrent);
    }

    private static double percentile(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.min(sorted.length - 1, sorted.length * share)] / 1000.0;
    }
}
