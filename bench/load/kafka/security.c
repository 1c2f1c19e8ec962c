#include "security.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include "kafka.h"

#define DESCRIPTORS 65536

static const char *authority, *certificate, *key, *user, *password;
static SSL_CTX *context;
static SSL *sessions[DESCRIPTORS]; /* by descriptor; NULL without TLS */

void security_init(void) {
    authority = option_text("tls-ca", "");
    certificate = option_text("certificate", "");
    key = option_text("key", "");
    user = option_text("user", "");
    password = option_text("password", "");
    if (!*authority) return;
    context = SSL_CTX_new(TLS_client_method());
    if (SSL_CTX_load_verify_locations(context, authority, NULL) != 1) fail("%s holds no certificate", authority);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (*certificate && (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
                         SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1))
        fail("%s and %s are not a certificate and its key", certificate, key);
}

void security_configure(rd_kafka_conf_t *conf) {
    if (!*authority) return;
    conf_set(conf, "security.protocol", *user ? "sasl_ssl" : "ssl");
    conf_set(conf, "ssl.ca.location", authority);
    conf_set(conf, "ssl.endpoint.identification.algorithm", "none"); /* the brokers are addresses, not names */
    if (*certificate) {
        conf_set(conf, "ssl.certificate.location", certificate);
        conf_set(conf, "ssl.key.location", key);
    }
    if (*user) {
        conf_set(conf, "sasl.mechanism", "PLAIN");
        conf_set(conf, "sasl.username", user);
        conf_set(conf, "sasl.password", password);
    }
}

const char *secure_user(void) { return *user ? user : NULL; }

const char *secure_password(void) { return password; }

int secure_begin(int descriptor) {
    if (context == NULL) return 0;
    if (descriptor >= DESCRIPTORS) fail("more than %d connections", DESCRIPTORS);
    SSL_free(sessions[descriptor]); /* of an earlier connection with this number */
    SSL *session = sessions[descriptor] = SSL_new(context);
    return SSL_set_fd(session, descriptor) == 1 && SSL_connect(session) == 1 ? 0 : -1;
}

ssize_t secure_send(int descriptor, const void *bytes, size_t length) {
    if (context == NULL) return send(descriptor, bytes, length, MSG_NOSIGNAL);
    return SSL_write(sessions[descriptor], bytes, (int)length);
}

ssize_t secure_receive(int descriptor, void *bytes, size_t length) {
    if (context == NULL) return recv(descriptor, bytes, length, 0);
    return SSL_read(sessions[descriptor], bytes, (int)length);
}
