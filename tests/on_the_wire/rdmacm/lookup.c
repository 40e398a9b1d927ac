/* Has librdmacm look up the way to an address, as programs do before they connect, and prints the path record. */

#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints, *found, *source = NULL;
	const unsigned char *route;
	size_t at;
	int failed;

	if (argc < 2) {
		fprintf(stderr, "usage: %s DESTINATION [SOURCE]\n", argv[0]);
		return 2;
	}
	memset(&hints, 0, sizeof hints);
	hints.ai_port_space = RDMA_PS_TCP;
	if (argc > 2) {
		struct rdma_addrinfo passive;
		memset(&passive, 0, sizeof passive);
		passive.ai_port_space = RDMA_PS_TCP;
		passive.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST;
		if (rdma_getaddrinfo(argv[2], NULL, &passive, &source)) {
			perror("the source");
			return 1;
		}
		hints.ai_src_addr = source->ai_src_addr;
		hints.ai_src_len = source->ai_src_len;
	}
	failed = rdma_getaddrinfo(argv[1], NULL, &hints, &found);
	if (failed) {
		perror("rdma_getaddrinfo");
		return 1;
	}
	route = found->ai_route;
	for (at = 0; at < found->ai_route_len; at++)
		printf("%02x", route[at]);
	printf("\n");
	return 0;
}
