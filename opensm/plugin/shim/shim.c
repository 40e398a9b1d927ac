/*
 * OpenSM's side of the plugin: reads its structures, and fills its tables. OpenSM holds its lock while it
 * calls: for writing when tables are built, for reading when a path's level is asked for.
 */
#include <stdlib.h>
#include <string.h>

/* First: it decides how the structures are laid out. */
#include <opensm/osm_config.h>
#include <opensm/osm_version.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_event_plugin.h>
#include <opensm/osm_node.h>
#include <opensm/osm_switch.h>
#include <opensm/osm_port.h>
#include <opensm/osm_log.h>

#include "mapper.h"

const char mapper_shim_osm_version[] = OSM_VERSION;

struct shim {
	osm_opensm_t *osm;
	struct mapper_plugin *plugin;
	external_routing_engine_module_t module;
};

static void shim_log(void *osm, int is_error, const char *line)
{
	osm_log(&((osm_opensm_t *)osm)->log, is_error ? OSM_LOG_ERROR : OSM_LOG_INFO,
		is_error ? "ERR 4D01: mapper: %s\n" : "mapper: %s\n", line);
}

static uint8_t lanes_of(const osm_subn_t *subn)
{
	/* Operational VLs are coded: 1, 2, 4, 8, 15. */
	static const uint8_t lanes[] = { 15, 1, 2, 4, 8, 15 };
	uint8_t most = subn->opt.max_op_vls < sizeof(lanes) ? lanes[subn->opt.max_op_vls] : 15;

	/* Without QoS OpenSM writes no SL-to-VL tables and asks for no levels. */
	if (!subn->opt.qos)
		return 1;
	return subn->min_data_vls < most ? subn->min_data_vls : most;
}

static void add_switch(struct mapper_request *request, osm_switch_t *sw)
{
	osm_node_t *node = sw->p_node;
	osm_physp_t *own = osm_node_get_physp_ptr(node, 0);
	uint8_t port, peer_port;

	mapper_request_switch(request, cl_ntoh64(osm_node_get_node_guid(node)),
			      cl_ntoh64(node->node_info.sys_guid), node->print_desc,
			      own ? cl_ntoh16(osm_physp_get_base_lid(own)) : 0,
			      own ? ib_port_info_get_lmc(&own->port_info) : 0,
			      sw->num_ports ? sw->num_ports - 1 : 0, sw->lft,
			      sw->lft ? sw->lft_size : 0);
	for (port = 1; port < sw->num_ports; port++) {
		osm_physp_t *physp = osm_node_get_physp_ptr(node, port);
		osm_node_t *peer = osm_node_get_remote_node(node, port, &peer_port);

		if (physp && peer && osm_link_is_healthy(physp))
			mapper_request_link(request, port, cl_ntoh64(osm_node_get_node_guid(peer)),
					    peer_port);
	}
}

static void add_adapter(struct mapper_request *request, osm_port_t *port)
{
	osm_node_t *node = port->p_node;
	osm_physp_t *physp = port->p_physp;

	mapper_request_adapter(request, cl_ntoh64(osm_node_get_node_guid(node)),
			       cl_ntoh64(port->guid), cl_ntoh64(node->node_info.sys_guid),
			       node->print_desc, osm_physp_get_port_num(physp),
			       cl_ntoh16(osm_physp_get_base_lid(physp)),
			       ib_port_info_get_lmc(&physp->port_info));
}

static struct mapper_request *request_of(osm_subn_t *subn)
{
	struct mapper_request *request = mapper_request_new(lanes_of(subn));
	cl_map_item_t *item;

	if (!request)
		return NULL;
	for (item = cl_qmap_head(&subn->sw_guid_tbl); item != cl_qmap_end(&subn->sw_guid_tbl);
	     item = cl_qmap_next(item))
		add_switch(request, (osm_switch_t *)item);
	for (item = cl_qmap_head(&subn->port_guid_tbl); item != cl_qmap_end(&subn->port_guid_tbl);
	     item = cl_qmap_next(item)) {
		osm_port_t *port = (osm_port_t *)item;

		if (osm_node_get_type(port->p_node) != IB_NODE_TYPE_SWITCH)
			add_adapter(request, port);
	}
	return request;
}

/* Each switch has room for its table before any of them is written to. */
static int check_room(struct shim *shim)
{
	osm_subn_t *subn = &shim->osm->subn;
	cl_map_item_t *item;
	size_t size;

	for (item = cl_qmap_head(&subn->sw_guid_tbl); item != cl_qmap_end(&subn->sw_guid_tbl);
	     item = cl_qmap_next(item)) {
		osm_switch_t *sw = (osm_switch_t *)item;
		uint64_t guid = cl_ntoh64(osm_node_get_node_guid(sw->p_node));

		if (!mapper_table(shim->plugin, guid, &size) || !sw->new_lft || size > sw->lft_size) {
			shim_log(shim->osm, 1, "a switch has no room for its table");
			return -1;
		}
	}
	return 0;
}

static int build_tables(void *context)
{
	struct shim *shim = context;
	osm_subn_t *subn = &shim->osm->subn;
	struct mapper_request *request = request_of(subn);
	cl_map_item_t *item;

	if (!request || mapper_compute(shim->plugin, request) || check_room(shim))
		return -1;
	for (item = cl_qmap_head(&subn->sw_guid_tbl); item != cl_qmap_end(&subn->sw_guid_tbl);
	     item = cl_qmap_next(item)) {
		osm_switch_t *sw = (osm_switch_t *)item;
		uint64_t guid = cl_ntoh64(osm_node_get_node_guid(sw->p_node));
		size_t size;
		const uint8_t *table = mapper_table(shim->plugin, guid, &size);

		memset(sw->new_lft, OSM_NO_PATH, sw->lft_size);
		memcpy(sw->new_lft, table, size);
	}
	return 0;
}

static uint8_t path_sl(void *context, uint8_t hint, const ib_net16_t from, const ib_net16_t to)
{
	struct shim *shim = context;

	return mapper_level(shim->plugin, cl_ntoh16(from), cl_ntoh16(to), hint);
}

/*
 * With layers, level and lane are the same number at every port. Levels that no path has go to lane 15,
 * where data is dropped: in a lane of a layer their frames could close a circle.
 */
static void update_sl2vl(void *context, osm_physp_t *port, uint8_t in_port, uint8_t out_port,
			 ib_slvl_table_t *table)
{
	struct shim *shim = context;
	uint8_t layers = mapper_layers(shim->plugin);
	uint8_t level;

	(void)port;
	(void)in_port;
	(void)out_port;
	if (layers < 2)
		return;
	for (level = 0; level < 16; level++)
		ib_slvl_table_set(table, level, level < layers ? level : 15);
}

static int setup(osm_routing_engine_t *engine, osm_opensm_t *osm)
{
	/* The context was set from what was registered. */
	(void)osm;
	engine->ucast_build_fwd_tables = build_tables;
	engine->path_sl = path_sl;
	engine->update_sl2vl = update_sl2vl;
	return 0;
}

void *mapper_shim_create(void *opaque)
{
	osm_opensm_t *osm = opaque;
	struct shim *shim = calloc(1, sizeof(*shim));

	if (!shim)
		return NULL;
	shim->osm = osm;
	shim->plugin = mapper_new(osm->subn.opt.event_plugin_options, osm, shim_log);
	if (!shim->plugin) {
		free(shim);
		return NULL;
	}
	shim->module.name = "mapper";
	shim->module.setup = setup;
	shim->module.context = shim;
	if (osm_register_external_routing_engine(osm, &shim->module, shim) != CL_SUCCESS) {
		shim_log(osm, 1, "OpenSM has an engine of this name already");
		mapper_shim_delete(shim);
		return NULL;
	}
	return shim;
}

void mapper_shim_delete(void *data)
{
	struct shim *shim = data;

	mapper_free(shim->plugin);
	free(shim);
}

/* Tables are asked for by the engine's functions; no event is of interest. */
void mapper_shim_report(void *data, int event, void *event_data)
{
	(void)data;
	(void)event;
	(void)event_data;
}
