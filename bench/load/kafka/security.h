/* How a secured broker is reached: --tls-ca FILE for TLS, --certificate and --key (PEM) for a certificate of one's own, --user and
 * --password for a login by SASL PLAIN. */
#ifndef HEADRACE_LOAD_SECURITY_H
#define HEADRACE_LOAD_SECURITY_H

#include <librdkafka/rdkafka.h>
#include <stddef.h>
#include <sys/types.h>

void security_init(void); /* once, before the options are done */
void security_configure(rd_kafka_conf_t *conf);

int secure_begin(int descriptor); /* the handshake on a new connection; -1 when it fails */
const char *secure_user(void);    /* NULL without a login */
const char *secure_password(void);
ssize_t secure_send(int descriptor, const void *bytes, size_t length);
ssize_t secure_receive(int descriptor, void *bytes, size_t length);

#endif
