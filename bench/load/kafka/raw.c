#include "raw.h"

#include <endian.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../support.h"
#include "security.h"

static int log_in(int descriptor);

int raw_connect(const char *address) {
    char host[256];
    const char *colon = strrchr(address, ':');
    if (colon == NULL || (size_t)(colon - address) >= sizeof host) fail("%s is not HOST:PORT", address);
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) fail("%s cannot be resolved", address);
    int descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 10};
    int yes = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(descriptor, found->ai_addr, found->ai_addrlen) != 0) {
        close(descriptor);
        descriptor = -1;
    }
    freeaddrinfo(found);
    if (descriptor >= 0 && (secure_begin(descriptor) < 0 || log_in(descriptor) < 0)) {
        close(descriptor);
        descriptor = -1;
    }
    return descriptor;
}

static int log_in(int descriptor) {
    if (secure_user() == NULL) return 0;
    struct frame request = {0}, reply = {0};
    frame_open(&request, API_SASL_HANDSHAKE, 1, 1);
    put_string(&request, "PLAIN");
    if (frame_exchange(&request, &reply, descriptor) < 0 || get_int16(&reply) != 0) return -1;
    char login[512];
    int length = snprintf(login, sizeof login, "%c%s%c%s", 0, secure_user(), 0, secure_password());
    frame_open(&request, API_SASL_AUTHENTICATE, 1, 2);
    put_bytes(&request, login, length);
    int failed = frame_exchange(&request, &reply, descriptor) < 0 || get_int16(&reply) != 0;
    frame_free(&request);
    frame_free(&reply);
    return failed ? -1 : 0;
}

static void reserve(struct frame *frame, size_t length) {
    if (length <= frame->capacity) return;
    frame->capacity = length * 2;
    frame->bytes = realloc(frame->bytes, frame->capacity);
    if (frame->bytes == NULL) fail("no memory for a frame of %zu bytes", length);
}

static void put(struct frame *frame, const void *bytes, size_t length) {
    reserve(frame, frame->length + length);
    memcpy(frame->bytes + frame->length, bytes, length);
    frame->length += length;
}

void put_int8(struct frame *frame, int8_t value) { put(frame, &value, sizeof value); }

void put_int16(struct frame *frame, int16_t value) {
    uint16_t big = htobe16((uint16_t)value);
    put(frame, &big, sizeof big);
}

void put_int32(struct frame *frame, int32_t value) {
    uint32_t big = htobe32((uint32_t)value);
    put(frame, &big, sizeof big);
}

void put_int64(struct frame *frame, int64_t value) {
    uint64_t big = htobe64((uint64_t)value);
    put(frame, &big, sizeof big);
}

void put_string(struct frame *frame, const char *text) {
    if (text == NULL) {
        put_int16(frame, -1);
        return;
    }
    put_int16(frame, (int16_t)strlen(text));
    put(frame, text, strlen(text));
}

void put_bytes(struct frame *frame, const void *bytes, int32_t length) {
    put_int32(frame, length);
    put(frame, bytes, (size_t)length);
}

void put_raw(struct frame *frame, const void *bytes, size_t length) { put(frame, bytes, length); }

void frame_number(struct frame *request, int32_t correlation) {
    uint32_t big = htobe32((uint32_t)correlation);
    memcpy(request->bytes + 8, &big, sizeof big);
}

void frame_open(struct frame *frame, int16_t api, int16_t version, int32_t correlation) {
    frame->length = 0;
    put_int32(frame, 0); /* the frame's length, filled in when it is sent */
    put_int16(frame, api);
    put_int16(frame, version);
    put_int32(frame, correlation);
    put_string(frame, "headrace-load");
}

static int send_all(int descriptor, const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = secure_send(descriptor, bytes, length);
        if (sent <= 0) return -1;
        bytes += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static int receive_all(int descriptor, uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t received = secure_receive(descriptor, bytes, length);
        if (received <= 0) return -1;
        bytes += received;
        length -= (size_t)received;
    }
    return 0;
}

int frame_send(struct frame *request, int descriptor) {
    uint32_t size = htobe32((uint32_t)(request->length - 4));
    memcpy(request->bytes, &size, sizeof size);
    return send_all(descriptor, request->bytes, request->length);
}

int frame_receive(struct frame *reply, int32_t correlation, int descriptor) {
    uint32_t size, expected = htobe32((uint32_t)correlation);
    if (receive_all(descriptor, (uint8_t *)&size, sizeof size) < 0) return -1;
    reply->length = be32toh(size);
    if (reply->length < 4 || reply->length > 256u << 20) return -1;
    reserve(reply, reply->length);
    if (receive_all(descriptor, reply->bytes, reply->length) < 0) return -1;
    reply->read = 4;
    return memcmp(reply->bytes, &expected, sizeof expected) == 0 ? 0 : -1;
}

int frame_exchange(struct frame *request, struct frame *reply, int descriptor) {
    uint32_t correlation;
    memcpy(&correlation, request->bytes + 8, sizeof correlation);
    if (frame_send(request, descriptor) < 0) return -1;
    return frame_receive(reply, (int32_t)be32toh(correlation), descriptor);
}

static const uint8_t *take(struct frame *frame, size_t length) {
    if (length > frame->length - frame->read) fail("a reply ended too early");
    frame->read += length;
    return frame->bytes + frame->read - length;
}

int16_t get_int16(struct frame *frame) {
    uint16_t big;
    memcpy(&big, take(frame, sizeof big), sizeof big);
    return (int16_t)be16toh(big);
}

int32_t get_int32(struct frame *frame) {
    uint32_t big;
    memcpy(&big, take(frame, sizeof big), sizeof big);
    return (int32_t)be32toh(big);
}

int64_t get_int64(struct frame *frame) {
    uint64_t big;
    memcpy(&big, take(frame, sizeof big), sizeof big);
    return (int64_t)be64toh(big);
}

void get_skip(struct frame *frame, size_t length) { take(frame, length); }

void get_string(struct frame *frame, char *text, size_t capacity) {
    int16_t length = get_int16(frame);
    if (length < 0) length = 0;
    if ((size_t)length >= capacity) fail("a text of %d bytes in a reply is longer than any that was expected", length);
    memcpy(text, take(frame, (size_t)length), (size_t)length);
    text[length] = '\0';
}

void frame_free(struct frame *frame) { free(frame->bytes); }
