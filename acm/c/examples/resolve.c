/* Prints the paths to names and addresses: resolve SERVICE NAME|ADDRESS.. */
#include <arpa/inet.h>
#include <mapper_acm.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static int resolve(struct mapper_acm *acm, const char *text, struct mapper_acm_path *path)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return mapper_acm_resolve_ip(acm, NULL, (struct sockaddr *)&v4, 0, path);
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
        return mapper_acm_resolve_ip(acm, NULL, (struct sockaddr *)&v6, 0, path);
    return mapper_acm_resolve_name(acm, NULL, text, MAPPER_ACM_NO_DELAY, path);
}

int main(int argc, char **argv)
{
    struct mapper_acm *acm;
    struct mapper_acm_endpoint endpoint;
    struct mapper_acm_counters counters;
    uint32_t change = 0;
    int error = argc < 2 ? 1 : mapper_acm_connect(argv[1], &acm);

    if (error) {
        fprintf(stderr, "cannot connect: %s\n", strerror(-error));
        return 1;
    }
    /* A minute, for a service that was told to try for long. */
    mapper_acm_set_patience(acm, 60000);
    for (int i = 2; i < argc; i++) {
        struct mapper_acm_path path;
        char gid[INET6_ADDRSTRLEN];

        error = resolve(acm, argv[i], &path);
        if (!error)
            error = mapper_acm_resolve_path(acm, MAPPER_ACM_VERIFY, &path);
        if (error)
            printf("%s: %s\n", argv[i], strerror(-error));
        else
            printf("%s: %s\n", argv[i], inet_ntop(AF_INET6, path.record + 8, gid, sizeof gid));
    }
    if (!mapper_acm_query_counters(acm, 0, &counters))
        printf("resolved: %llu\n", (unsigned long long)counters.count[1]);
    if (!mapper_acm_query_endpoint(acm, 1, &endpoint)) {
        printf("endpoint:");
        for (uint32_t i = 0; i < endpoint.address_count; i++)
            printf(" %s", endpoint.addresses[i]);
        printf("\n");
        mapper_acm_free_endpoint(&endpoint);
    }
    /* A program that remembers paths would go on to wait, in a thread of its own, and ask anew whenever this returns. */
    if (!mapper_acm_wait_for_change(acm, &change))
        printf("change: %u\n", (unsigned)change);
    mapper_acm_disconnect(acm);
    return 0;
}
