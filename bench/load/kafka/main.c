/* kafka-load KIND --address HOST:PORT [--option value …]: load for any Kafka-compatible broker, answered by one JSON line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kafka.h"
#include "security.h"

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {
    {"produce", load_produce},     {"flood", load_flood},             {"consume", load_consume},
    {"drain", load_drain},         {"latency", load_latency},
    {"positions", load_positions}, {"connections", load_connections}, {"commits", load_commits},
    {"rebalance", load_rebalance}, {"idle-groups", load_idle_groups}, {"transactions", load_transactions},
};

static void on_alarm(int signal_number) {
    (void)signal_number;
    static const char sentence[] = "the load did not end within twice its time limit\n";
    if (write(STDERR_FILENO, sentence, sizeof sentence - 1) < 0) _exit(3);
    _exit(2);
}

int main(int argc, char **argv) {
    if (argc < 2) fail("usage: kafka-load produce|flood|consume|drain|latency|positions|connections|commits|rebalance|idle-groups|transactions --address HOST:PORT [--option value …]");
    options_init(argc - 2, argv + 2);
    security_init();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)(2 * option_number("time-limit", 60)));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].run();
            return 0;
        }
    fail("%s is not a kind of load: produce, flood, consume, drain, latency, positions, connections, commits, rebalance, idle-groups or transactions", argv[1]);
}
