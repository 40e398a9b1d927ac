/*
 * What the shim, which knows OpenSM's structures, and the library, which knows the engines, call of each
 * other. All functions of the library return whatever goes wrong; none unwinds into C.
 */
#ifndef MAPPER_H
#define MAPPER_H

#include <stddef.h>
#include <stdint.h>

/* A subnet that is being handed over. */
struct mapper_request;
/* What one OpenSM asked and was told. */
struct mapper_plugin;

/* Writes a line into OpenSM's log; `is_error` tells its level. */
typedef void (*mapper_log)(void *osm, int is_error, const char *line);

/* The plugin of these options, or NULL if they are wrong, which is said. */
struct mapper_plugin *mapper_new(const char *options, void *osm, mapper_log log);
void mapper_free(struct mapper_plugin *plugin);

struct mapper_request *mapper_request_new(uint8_t lanes);
/* The table in force is `lft`, of `lft_size` bytes. */
void mapper_request_switch(struct mapper_request *request, uint64_t guid, uint64_t system_guid,
			   const char *description, uint16_t lid, uint8_t lmc, uint8_t ports,
			   const uint8_t *lft, size_t lft_size);
/* A cable of the switch that was added last. */
void mapper_request_link(struct mapper_request *request, uint8_t port, uint64_t peer,
			 uint8_t peer_port);
void mapper_request_adapter(struct mapper_request *request, uint64_t node_guid, uint64_t port_guid,
			    uint64_t system_guid, const char *description, uint8_t port,
			    uint16_t lid, uint8_t lmc);

/* Has the tables of the request computed, which is gone afterwards. 0 if there are some. */
int mapper_compute(struct mapper_plugin *plugin, struct mapper_request *request);
/* The switch's table, by LID, and its size; NULL if it has none. Valid until the next computation. */
const uint8_t *mapper_table(const struct mapper_plugin *plugin, uint64_t guid, size_t *size);
/* Service levels in use. 1: all is in level 0. */
uint8_t mapper_layers(const struct mapper_plugin *plugin);
/* The level from one LID to another; `hint` if none is prescribed. */
uint8_t mapper_level(const struct mapper_plugin *plugin, uint16_t from, uint16_t to, uint8_t hint);

/* The shim's side, for the plugin's table of functions. */
void *mapper_shim_create(void *osm);
void mapper_shim_delete(void *data);
void mapper_shim_report(void *data, int event, void *event_data);
extern const char mapper_shim_osm_version[];

#endif
