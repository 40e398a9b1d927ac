/*
 * Asks the ACM service of a machine for the paths to names and addresses: the calls that libibacm offered, for many
 * threads and any number of connections.
 *
 * Each call returns 0, or a negative number of errno:
 *   -ENODATA        nothing is known of it, or the path is not as it was to be verified
 *   -ETIMEDOUT      nobody has said to have this name or address, or the service does not answer
 *   -ENOTCONN       no route leads there
 *   -EADDRNOTAVAIL  the source is no address of this machine, or the destination not that of one host
 *   -ENOMEM         the service has too much to do
 *   -EINVAL         an argument makes no sense, or there is no such endpoint
 *   -EPIPE          the service has gone, or a request went out only in part; connect again
 *   -EPROTO         what listens there does not speak as such a service does
 */
#ifndef MAPPER_ACM_H
#define MAPPER_ACM_H

#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Answer at once, with what is known. */
#define MAPPER_ACM_NO_DELAY (UINT32_C(1) << 30)
/* Compare with the map and the routes in force; for mapper_acm_resolve_path. */
#define MAPPER_ACM_VERIFY (UINT32_C(1) << 31)

/* A connection. Threads may share it, and take turns; each may have its own. */
struct mapper_acm;

/* A path record of InfiniBand's, in the layout of struct ibv_path_record: 64 bytes in network order. */
struct mapper_acm_path {
    uint8_t record[64];
};

/* Errors, resolved, no data, address queries, address cache hits, route queries, route cache hits. */
struct mapper_acm_counters {
    uint64_t count[7];
};

/* An endpoint, and the names and addresses that it goes by. */
struct mapper_acm_endpoint {
    uint64_t guid;
    uint16_t pkey;
    uint8_t port;
    uint8_t ports;
    uint32_t address_count;
    char (*addresses)[64];
};

/*
 * Connects to a service: a unix socket if the text begins with a slash, else a host with a service of TCP. NULL is for the
 * service of this machine.
 */
int mapper_acm_connect(const char *service, struct mapper_acm **connection);
void mapper_acm_disconnect(struct mapper_acm *connection);

/* Changes how many milliseconds the service may take to answer, which are 30,000 at first; not 0. */
int mapper_acm_set_patience(struct mapper_acm *connection, uint32_t milliseconds);

/* The path to a name or an address. A source of NULL leaves the choice to the service. */
int mapper_acm_resolve_name(struct mapper_acm *connection, const char *source, const char *destination,
                            uint32_t flags, struct mapper_acm_path *path);
int mapper_acm_resolve_ip(struct mapper_acm *connection, const struct sockaddr *source,
                          const struct sockaddr *destination, uint32_t flags, struct mapper_acm_path *path);
/* Completes or verifies a path of which LIDs or GIDs are known. */
int mapper_acm_resolve_path(struct mapper_acm *connection, uint32_t flags, struct mapper_acm_path *path);

/* The counters of an endpoint, from 1, or of all for 0; or of the one that has this name or address of IP. */
int mapper_acm_query_counters(struct mapper_acm *connection, uint8_t endpoint, struct mapper_acm_counters *counters);
int mapper_acm_query_counters_of(struct mapper_acm *connection, const char *address,
                                 struct mapper_acm_counters *counters);

/* An endpoint, from 1. Its addresses are to be freed. */
int mapper_acm_query_endpoint(struct mapper_acm *connection, uint8_t endpoint, struct mapper_acm_endpoint *info);
void mapper_acm_free_endpoint(struct mapper_acm_endpoint *info);

/*
 * Waits until the service may answer something otherwise than at the change of this number, as after a new map, and puts
 * the number of the last change there. With 0 it returns at once with the number of now. Numbers count for one
 * connection. It waits for as long as it takes, so it should have a connection of its own.
 */
int mapper_acm_wait_for_change(struct mapper_acm *connection, uint32_t *number);

#ifdef __cplusplus
}
#endif

#endif
