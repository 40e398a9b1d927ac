-- Wireshark dissector of mapper's frames. `mapper dissector` writes it, and the tables in it from
-- those of the protocol: change these instead.
--
--   tshark -X lua_script:mapper.lua -r FILE
--
-- Frames may have any EtherType that the agents are told to use; this one is the default.
local ethertype = 0x88b5
local protocol_version = 4

-- Route elements, by their first byte.
local elements = {
  { low = 0x80, high = 0xbf, bytes = 1, kind = "relative" },
  { low = 0xc0, high = 0xc0, bytes = 2, kind = "absolute" },
  { low = 0xe0, high = 0xe0, bytes = 1, kind = "identify" },
}

-- Fields in the order in which they travel.
local records = {}
records["probe.loopback"] = { name = "probe.loopback", title = "loopback" }
records["probe.compare"] = { name = "probe.compare", title = "compare" }
records["probe.identify"] = { name = "probe.identify", title = "identify" }
records["info"] = {
  name = "info", title = "info",
  {
    name = "level", title = "Level",
    about = "The sender's level: of the agents that may map, the highest does",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
  {
    name = "mac", title = "MAC",
    about = "The sender's address",
    shape = "mac",
  },
  {
    name = "host_type", title = "Host type",
    about = "What the sender's host runs",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
  {
    name = "session", title = "Session",
    about = "A number that the sender drew when it started",
    shape = "unsigned", bytes = 4, base = "hexadecimal",
  },
  {
    name = "state", title = "State",
    about = "Where the sender is in its life",
    shape = "code", bytes = 1,
    names = { [0] = "starting", [1] = "mapping", [2] = "passive", [3] = "fetching", [4] = "routing", [5] = "configured", [6] = "isolated" },
  },
  {
    name = "version", title = "Version",
    about = "The map that the sender holds",
    shape = "map_version",
  },
  {
    name = "pieces", title = "Pieces",
    about = "How many pieces that map has",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
  {
    name = "flags", title = "Flags",
    about = "What else the sender says of itself",
    shape = "flags", bytes = 1,
    flags = {
      { mask = 0x01, name = "subtree_complete", title = "Subtree complete",
        about = "The sender and all below it in the tree are configured with its map" },
      { mask = 0x02, name = "network_complete", title = "Network complete",
        about = "The whole network is configured with this map" },
      { mask = 0x04, name = "printeur", title = "Printeur",
        about = "The sender prints what others send it to print" },
      { mask = 0x08, name = "contested", title = "Contested",
        about = "Another host has the sender's address" },
      { mask = 0x10, name = "non_clos", title = "Non clos",
        about = "The sender is set to --non-clos" },
    },
  },
  {
    name = "mtu", title = "MTU",
    about = "How long the frames may be that the sender sends and takes, in bytes",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
  {
    name = "mtu_ports", title = "MTU ports",
    about = "The ports of a node that have no more than that: bit n - 1 for port n",
    shape = "unsigned", bytes = 4, base = "hexadecimal",
  },
}
records["probe"] = {
  name = "probe", title = "probe",
  {
    name = "id", title = "ID",
    about = "Tells this probe from all others of its sender",
    shape = "unsigned", bytes = 4, base = "hexadecimal",
  },
  {
    name = "kind", title = "Kind",
    about = "Why it was sent",
    shape = "choice",
    variants = {
      [0] = records["probe.loopback"],
      [1] = records["probe.compare"],
      [2] = records["probe.identify"],
    },
  },
  {
    name = "left", title = "Left",
    about = "How many route elements are left over where it turns",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
  {
    name = "info", title = "Info",
    about = "What the sender says of itself",
    shape = "record", record = records["info"],
  },
  {
    name = "way_there", title = "Way there",
    about = "The way from the sender to where it turns",
    shape = "route",
  },
  {
    name = "reply_room", title = "Reply room",
    about = "Zeros, so that no reply is longer than what it answers",
    shape = "zeros", bytes = 8,
  },
}
records["scout.mapping"] = { name = "scout.mapping", title = "mapping" }
records["suspect"] = {
  name = "suspect", title = "suspect",
  {
    name = "xbar", title = "Xbar",
    about = "The number of a crossbar in the map",
    shape = "unsigned", bytes = 4, base = "decimal",
  },
  {
    name = "port", title = "Port",
    about = "The number of a port of it",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
}
records["scout.query_map_version"] = {
  name = "scout.query_map_version", title = "query-map-version",
  {
    name = "seen", title = "Seen",
    about = "The map that the suspects refer to",
    shape = "map_version",
  },
  {
    name = "suspects", title = "Suspects",
    about = "Where that map no longer holds",
    shape = "list", record = records["suspect"],
  },
}
records["scout.tree"] = {
  name = "scout.tree", title = "tree",
  {
    name = "version", title = "Version",
    about = "The map to collect",
    shape = "map_version",
  },
  {
    name = "level", title = "Level",
    about = "The level of the global mapper that made it",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
}
records["scout.verify"] = { name = "scout.verify", title = "verify" }
records["scout.map_request"] = {
  name = "scout.map_request", title = "map-request",
  {
    name = "version", title = "Version",
    about = "The map",
    shape = "map_version",
  },
  {
    name = "piece", title = "Piece",
    about = "The piece, counted from 0",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
  {
    name = "room_bytes", title = "Room bytes",
    about = "Most bytes that the piece may have",
    shape = "room",
  },
}
records["scout.pause"] = {
  name = "scout.pause", title = "pause",
  {
    name = "max_ms", title = "Max ms",
    about = "The milliseconds after which the pause ends by itself",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
}
records["scout.resume"] = { name = "scout.resume", title = "resume" }
records["scout.printf"] = {
  name = "scout.printf", title = "printf",
  {
    name = "text", title = "Text",
    about = "What is to be printed",
    shape = "counted_text",
  },
}
records["scout.alive"] = {
  name = "scout.alive", title = "alive",
  {
    name = "answer_bytes", title = "Answer bytes",
    about = "How long the answer shall be, its route and all",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
}
records["place"] = {
  name = "place", title = "place",
  {
    name = "xbar", title = "Xbar",
    about = "The number of a crossbar in the sender's map",
    shape = "unsigned", bytes = 4, base = "decimal",
  },
  {
    name = "port", title = "Port",
    about = "The number of a port of it",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
  {
    name = "tag", title = "Tag",
    about = "The identity of the crossbar",
    shape = "optional",
    inner = {
      title = "Tag",
      shape = "unsigned", bytes = 8, base = "hexadecimal",
    },
  },
}
records["scout.address_conflict"] = {
  name = "scout.address_conflict", title = "address-conflict",
  {
    name = "places", title = "Places",
    about = "Where hosts with this address are",
    shape = "list", record = records["place"],
  },
}
records["scout.hello"] = { name = "scout.hello", title = "hello" }
records["scout.service"] = {
  name = "scout.service", title = "service",
  {
    name = "service", title = "Service",
    about = "Which service is asked",
    shape = "code", bytes = 1,
    names = { [1] = "directory", [2] = "resolution", [3] = "loss_reports" },
  },
  {
    name = "question", title = "Question",
    about = "What it is asked",
    shape = "counted_bytes",
  },
  {
    name = "room_bytes", title = "Room bytes",
    about = "Most bytes that the answer may have beyond those of the question",
    shape = "room",
  },
}
records["scout"] = {
  name = "scout", title = "scout",
  {
    name = "id", title = "ID",
    about = "Tells this scout from all others of its sender",
    shape = "unsigned", bytes = 4, base = "hexadecimal",
  },
  {
    name = "info", title = "Info",
    about = "What the sender says of itself",
    shape = "record", record = records["info"],
  },
  {
    name = "way_back", title = "Way back",
    about = "The way back to the sender",
    shape = "route",
  },
  {
    name = "way_there", title = "Way there",
    about = "The way that the scout takes",
    shape = "route",
  },
  {
    name = "reply_room", title = "Reply room",
    about = "Zeros, so that no reply is longer than what it answers",
    shape = "zeros", bytes = 8,
  },
  {
    name = "reason", title = "Reason",
    about = "Why it was sent",
    shape = "choice",
    variants = {
      [1] = records["scout.mapping"],
      [2] = records["scout.query_map_version"],
      [3] = records["scout.tree"],
      [4] = records["scout.verify"],
      [5] = records["scout.map_request"],
      [6] = records["scout.pause"],
      [7] = records["scout.resume"],
      [8] = records["scout.printf"],
      [9] = records["scout.alive"],
      [10] = records["scout.address_conflict"],
      [11] = records["scout.hello"],
      [12] = records["scout.service"],
    },
  },
}
records["reply.probe"] = { name = "reply.probe", title = "probe" }
records["reply.mapping"] = { name = "reply.mapping", title = "mapping" }
records["reply.query_map_version"] = { name = "reply.query_map_version", title = "query-map-version" }
records["reply.tree"] = { name = "reply.tree", title = "tree" }
records["reply.verify"] = { name = "reply.verify", title = "verify" }
records["reply.map_request"] = {
  name = "reply.map_request", title = "map-request",
  {
    name = "version", title = "Version",
    about = "The map",
    shape = "map_version",
  },
  {
    name = "piece", title = "Piece",
    about = "The piece, counted from 0",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
  {
    name = "pieces", title = "Pieces",
    about = "How many pieces the map has",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
  {
    name = "needs_bytes", title = "Needs bytes",
    about = "How much room the piece takes; 0 if it cannot be had here",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
  {
    name = "bytes", title = "Bytes",
    about = "The bytes of the piece",
    shape = "counted_bytes",
  },
}
records["reply.pause"] = { name = "reply.pause", title = "pause" }
records["reply.resume"] = { name = "reply.resume", title = "resume" }
records["reply.printf"] = { name = "reply.printf", title = "printf" }
records["reply.alive"] = { name = "reply.alive", title = "alive" }
records["reply.address_conflict"] = { name = "reply.address_conflict", title = "address-conflict" }
records["reply.hello"] = { name = "reply.hello", title = "hello" }
records["reply.service"] = {
  name = "reply.service", title = "service",
  {
    name = "service", title = "Service",
    about = "Which service answers",
    shape = "code", bytes = 1,
    names = { [1] = "directory", [2] = "resolution", [3] = "loss_reports" },
  },
  {
    name = "answer", title = "Answer",
    about = "What it answers",
    shape = "optional",
    inner = {
      title = "Answer",
      shape = "counted_bytes",
    },
  },
}
records["reply"] = {
  name = "reply", title = "reply",
  {
    name = "id", title = "ID",
    about = "The id of what it answers",
    shape = "unsigned", bytes = 4, base = "hexadecimal",
  },
  {
    name = "to", title = "To",
    about = "The address of who asked",
    shape = "mac",
  },
  {
    name = "info", title = "Info",
    about = "What the sender says of itself",
    shape = "record", record = records["info"],
  },
  {
    name = "answer", title = "Answer",
    about = "What it answers",
    shape = "choice",
    variants = {
      [0] = records["reply.probe"],
      [1] = records["reply.mapping"],
      [2] = records["reply.query_map_version"],
      [3] = records["reply.tree"],
      [4] = records["reply.verify"],
      [5] = records["reply.map_request"],
      [6] = records["reply.pause"],
      [7] = records["reply.resume"],
      [8] = records["reply.printf"],
      [9] = records["reply.alive"],
      [10] = records["reply.address_conflict"],
      [11] = records["reply.hello"],
      [12] = records["reply.service"],
    },
  },
}
records["message"] = {
  name = "message", title = "message",
  {
    name = "type", title = "Type",
    about = "Which message it is",
    shape = "choice",
    variants = {
      [1] = records["probe"],
      [2] = records["scout"],
      [3] = records["reply"],
    },
  },
}
records["data"] = {
  name = "data", title = "data",
  {
    name = "token", title = "Token",
    about = "A number of the sender's; its first bit is set in a check of a path",
    shape = "unsigned", bytes = 8, base = "hexadecimal",
  },
  {
    name = "way_back", title = "Way back",
    about = "The way from the last crossbar back to the sender",
    shape = "route",
  },
  {
    name = "ethernet", title = "Ethernet",
    about = "The user's frame, or a check of a path",
    shape = "ethernet",
  },
}
records["undeliverable"] = {
  name = "undeliverable", title = "undeliverable",
  {
    name = "token", title = "Token",
    about = "The token of the data frame",
    shape = "unsigned", bytes = 8, base = "hexadecimal",
  },
  {
    name = "tag", title = "Tag",
    about = "The identity of the crossbar",
    shape = "unsigned", bytes = 8, base = "hexadecimal",
  },
  {
    name = "port", title = "Port",
    about = "The port that has no carrier",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
}
records["hello.xbar"] = {
  name = "hello.xbar", title = "xbar",
  {
    name = "tag", title = "Tag",
    about = "The identity of the sender's crossbar",
    shape = "optional",
    inner = {
      title = "Tag",
      shape = "unsigned", bytes = 8, base = "hexadecimal",
    },
  },
  {
    name = "port", title = "Port",
    about = "The number of the sender's port",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
}
records["hello.host"] = {
  name = "hello.host", title = "host",
  {
    name = "address", title = "Address",
    about = "The address by which the fabric knows the host",
    shape = "mac",
  },
}
records["heard"] = {
  name = "heard", title = "heard",
  {
    name = "mac", title = "MAC",
    about = "The address of an interface",
    shape = "mac",
  },
}
records["hello"] = {
  name = "hello", title = "hello",
  {
    name = "end", title = "End",
    about = "What is at the sender's end of the cable",
    shape = "choice",
    variants = {
      [1] = records["hello.xbar"],
      [2] = records["hello.host"],
    },
  },
  {
    name = "mac", title = "MAC",
    about = "The address of the sender's interface",
    shape = "mac",
  },
  {
    name = "mtu", title = "MTU",
    about = "The most bytes behind the Ethernet header at the sender's interface",
    shape = "unsigned", bytes = 4, base = "decimal",
  },
  {
    name = "flags", title = "Flags",
    about = "What the sender's kernel obeys that arrives at this interface",
    shape = "flags", bytes = 2,
    flags = {
      { mask = 0x0001, name = "srv6", title = "Srv6",
        about = "Segments of whole addresses (SRv6) are obeyed" },
      { mask = 0x0002, name = "srv6_compressed", title = "Srv6 compressed",
        about = "Compressed segments (SRv6 with Next-C-SID) are obeyed" },
      { mask = 0x0004, name = "routes", title = "Routes",
        about = "IP packets are routed by their destination" },
    },
  },
  {
    name = "heard", title = "Heard",
    about = "The interfaces whose hellos the sender has heard here lately",
    shape = "list", record = records["heard"],
  },
}

-- A frame behind its route.
local frame = {}
frame.header = {
  name = "frame", title = "frame",
  {
    name = "kind", title = "Kind",
    about = "What the frame carries",
    shape = "code", bytes = 4,
    names = { [28687] = "mapper", [9] = "data", [28688] = "undeliverable", [28689] = "hello" },
  },
  {
    name = "version", title = "Version",
    about = "The version of the protocol",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
  {
    name = "flags", title = "Flags",
    about = "Which parts the frame has",
    shape = "flags", bytes = 1,
    flags = {
      { mask = 0x01, name = "stamp", title = "Stamp",
        about = "A stamp area follows the header" },
      { mask = 0x02, name = "signature", title = "Signature",
        about = "A signature follows the body" },
    },
  },
  {
    name = "body_length", title = "Body length",
    about = "How many bytes the body has",
    shape = "unsigned", bytes = 2, base = "decimal",
  },
}
frame.stamp = {
  name = "stamp", title = "stamp",
  {
    name = "tag", title = "Tag",
    about = "The identity of the crossbar; all is zero until one has stamped the frame",
    shape = "unsigned", bytes = 8, base = "hexadecimal",
  },
  {
    name = "ports", title = "Ports",
    about = "How many ports the crossbar has",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
  {
    name = "arrival", title = "Arrival",
    about = "The port by which the frame came in",
    shape = "unsigned", bytes = 1, base = "decimal",
  },
  {
    name = "carriers", title = "Carriers",
    about = "The ports that have carrier",
    shape = "port_set",
  },
  {
    name = "crc", title = "CRC",
    about = "The CRC-32 of the stamp",
    shape = "unsigned", bytes = 4, base = "hexadecimal",
  },
}
frame.signature = {
  name = "signature", title = "signature",
  {
    name = "key", title = "Key",
    about = "The number of the key that made the tag",
    shape = "unsigned", bytes = 4, base = "decimal",
  },
  {
    name = "sequence", title = "Sequence",
    about = "A number that grows with each frame of its sender",
    shape = "unsigned", bytes = 8, base = "hexadecimal",
  },
  {
    name = "answers", title = "Answers",
    about = "The sequence number of the frame that this one answers; 0 if none",
    shape = "unsigned", bytes = 8, base = "hexadecimal",
  },
  {
    name = "tag", title = "Tag",
    about = "HMAC-SHA-256 over the frame, cut to 20 bytes",
    shape = "bytes", bytes = 20,
  },
}
frame.ending = {
  name = "frame", title = "frame",
  {
    name = "crc", title = "CRC",
    about = "The CRC-32 of the frame without route and stamp area",
    shape = "unsigned", bytes = 4, base = "hexadecimal",
  },
}
frame.stamp_mask = 0x01
frame.signature_mask = 0x02
frame.bodies = {
  [0x0000700f] = records["message"],
  [0x00000009] = records["data"],
  [0x00007010] = records["undeliverable"],
  [0x00007011] = records["hello"],
}

local mapper = Proto("mapper", "Mapper of a source-routed fabric")

-- Declares the fields and faults that the tree shows.

local malformed = ProtoExpert.new(
  "mapper.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local bad_crc = ProtoExpert.new(
  "mapper.bad_crc", "The CRC-32 does not match", expert.group.CHECKSUM, expert.severity.ERROR)
local other_version = ProtoExpert.new(
  "mapper.other_version", "Another version of the protocol", expert.group.UNDECODED, expert.severity.WARN)
mapper.experts = { malformed, bad_crc, other_version }

local bases = { decimal = base.DEC, hexadecimal = base.HEX }
local unsigned = {
  [1] = ProtoField.uint8, [2] = ProtoField.uint16, [4] = ProtoField.uint32, [8] = ProtoField.uint64,
}
local proto_fields = {}

-- The field with this filter name, made at its first use: records share fields.
local function declare(name, make)
  proto_fields[name] = proto_fields[name] or make("mapper." .. name)
  return proto_fields[name]
end

local declare_record

-- Each of these takes the filter name of a field and its description, and adds to the description
-- the field of Wireshark.
local declare_shape = {}

local function declare_field(name, field)
  declare_shape[field.shape](name, field)
end

function declare_shape.unsigned(name, field)
  field.proto_field = declare(name, function(filter)
    return unsigned[field.bytes](filter, field.title, bases[field.base], nil, nil, field.about)
  end)
end

function declare_shape.code(name, field)
  field.proto_field = declare(name, function(filter)
    return unsigned[field.bytes](filter, field.title, base.DEC, field.names, nil, field.about)
  end)
end

function declare_shape.flags(name, field)
  field.proto_field = declare(name, function(filter)
    local number = field.bytes == 1 and ProtoField.uint8 or ProtoField.uint16
    return number(filter, field.title, base.HEX, nil, nil, field.about)
  end)
  for _, flag in ipairs(field.flags) do
    flag.proto_field = declare(name .. "." .. flag.name, function(filter)
      return ProtoField.bool(filter, flag.title, 8 * field.bytes, nil, flag.mask, flag.about)
    end)
  end
end

function declare_shape.mac(name, field)
  field.proto_field = declare(name, function(filter)
    return ProtoField.ether(filter, field.title, field.about)
  end)
end

local function declare_text(name, field)
  field.proto_field = declare(name, function(filter)
    return ProtoField.string(filter, field.title, base.UNICODE, field.about)
  end)
end

local function declare_count(name, field, title)
  field.count_field = declare(name, function(filter)
    return ProtoField.uint16(filter, field.title .. " " .. title, base.DEC)
  end)
end

declare_shape.map_version = declare_text
declare_shape.route = declare_text
declare_shape.port_set = declare_text

function declare_shape.bytes(name, field)
  field.proto_field = declare(name, function(filter)
    return ProtoField.bytes(filter, field.title, base.COLON, field.about)
  end)
end

function declare_shape.counted_bytes(name, field)
  declare_count(name .. ".length", field, "length")
  declare_shape.bytes(name, field)
end

function declare_shape.counted_text(name, field)
  declare_count(name .. ".length", field, "length")
  declare_text(name, field)
end

function declare_shape.room(name, field)
  field.proto_field = declare(name, function(filter)
    return ProtoField.uint16(filter, field.title, base.DEC, nil, nil, field.about)
  end)
end

function declare_shape.zeros() end

function declare_shape.record(_, field)
  declare_record(field.record)
end

function declare_shape.list(name, field)
  declare_count(name .. ".count", field, "count")
  declare_record(field.record)
end

function declare_shape.optional(name, field)
  declare_count(name .. ".present", field, "present")
  declare_field(name, field.inner)
end

function declare_shape.choice(name, field)
  local names = {}
  for code, record in pairs(field.variants) do
    names[code] = record.title
    declare_record(record)
  end
  field.proto_field = declare(name, function(filter)
    return ProtoField.uint8(filter, field.title, base.DEC, names, nil, field.about)
  end)
end

function declare_shape.ethernet() end

function declare_record(record)
  for _, field in ipairs(record) do
    declare_field(record.name .. "." .. field.name, field)
  end
end

local route_field = declare("route", function(filter)
  return ProtoField.string(filter, "Route", base.UNICODE, "The route elements that are left")
end)
for _, record in ipairs({ frame.header, frame.stamp, frame.signature, frame.ending }) do
  declare_record(record)
end
for _, record in pairs(frame.bodies) do
  declare_record(record)
end
local all_fields = {}
for _, proto_field in pairs(proto_fields) do
  all_fields[#all_fields + 1] = proto_field
end
mapper.fields = all_fields

-- Reads bytes one behind the other. A frame that is not what the tables say ends in an error with a
-- table, which dissect_frame shows.

local function stop(cursor, why)
  error({ range = cursor.buffer:range(math.min(cursor.at, cursor.buffer:len())), why = why }, 0)
end

-- The next bytes, which must be there.
local function take(cursor, count)
  local at = cursor.at
  if at + count > cursor.limit then
    stop(cursor, "the frame ends here, " .. (at + count - cursor.limit) .. " bytes too early")
  end
  cursor.at = at + count
  return cursor.buffer:range(at, count)
end

-- The next bytes must be zeros. They are not shown.
local function take_zeros(cursor, count)
  if count == 0 then return end
  local at = cursor.at
  local range = take(cursor, count)
  for nth = 0, count - 1 do
    if range:range(nth, 1):uint() ~= 0 then
      cursor.at = at + nth
      stop(cursor, "a zero is expected here")
    end
  end
end

-- The route elements from `at` to `limit`: where they end, and what they say.
local function read_elements(buffer, at, limit)
  local shown = {}
  while at < limit do
    local first = buffer:range(at, 1):uint()
    if first < 0x80 then break end
    local element
    for _, one in ipairs(elements) do
      if first >= one.low and first <= one.high then element = one end
    end
    if element == nil then
      return at, nil, string.format("byte 0x%02x begins no route element", first)
    end
    if at + element.bytes > limit then return at, nil, "the route ends inside an element" end
    if element.kind == "relative" then
      local delta = first % 0x40
      if delta >= 0x20 then delta = delta - 0x40 end
      shown[#shown + 1] = tostring(delta)
    elseif element.kind == "absolute" then
      shown[#shown + 1] = "@" .. buffer:range(at + 1, 1):uint()
    else
      shown[#shown + 1] = "?"
    end
    at = at + element.bytes
  end
  if #shown == 0 then return at, "-" end
  return at, table.concat(shown, ",")
end

local read_record

-- Each of these adds a field to the tree and moves on behind it.
local read_shape = {}

local function read_number(cursor, tree, field)
  tree:add(field.proto_field, take(cursor, field.bytes))
end

read_shape.unsigned = read_number

function read_shape.code(cursor, tree, field)
  read_number(cursor, tree, field)
end

function read_shape.flags(cursor, tree, field)
  local range = take(cursor, field.bytes)
  local item = tree:add(field.proto_field, range)
  for _, flag in ipairs(field.flags) do
    item:add(flag.proto_field, range)
  end
end

function read_shape.mac(cursor, tree, field)
  tree:add(field.proto_field, take(cursor, 6))
end

function read_shape.map_version(cursor, tree, field)
  local range = take(cursor, 10)
  local text = "none"
  if range:range(6, 4):uint() ~= 0 then
    local parts = {}
    for nth = 0, 5 do
      parts[#parts + 1] = string.format("%02x", range:range(nth, 1):uint())
    end
    text = table.concat(parts, ":") .. "/" .. range:range(6, 4):uint()
  end
  tree:add(field.proto_field, range, text)
end

function read_shape.route(cursor, tree, field)
  local from = cursor.at
  local length = take(cursor, 1):uint()
  take(cursor, length)
  local ends_at, text, why = read_elements(cursor.buffer, from + 1, cursor.at)
  if text == nil or ends_at ~= cursor.at then
    cursor.at = ends_at
    stop(cursor, why or "a route element is expected here")
  end
  tree:add(field.proto_field, cursor.buffer:range(from, 1 + length), text)
end

function read_shape.port_set(cursor, tree, field)
  local range = take(cursor, 32)
  local ports = {}
  for nth = 0, 31 do
    local bits = range:range(nth, 1):uint()
    for bit_number = 0, 7 do
      if bits % 2 == 1 then ports[#ports + 1] = tostring(nth * 8 + bit_number) end
      bits = math.floor(bits / 2)
    end
  end
  local text = "none"
  if #ports > 0 then text = table.concat(ports, ",") end
  tree:add(field.proto_field, range, text)
end

function read_shape.bytes(cursor, tree, field)
  read_number(cursor, tree, field)
end

local function read_count(cursor, tree, field, bytes)
  local range = take(cursor, bytes)
  tree:add(field.count_field, range)
  return range:uint()
end

function read_shape.counted_bytes(cursor, tree, field)
  local count = read_count(cursor, tree, field, 2)
  if count > 0 then tree:add(field.proto_field, take(cursor, count)) end
end

function read_shape.counted_text(cursor, tree, field)
  local count = read_count(cursor, tree, field, 2)
  if count > 0 then
    local range = take(cursor, count)
    tree:add(field.proto_field, range, range:string(ENC_UTF_8))
  end
end

function read_shape.room(cursor, tree, field)
  local range = take(cursor, 2)
  tree:add(field.proto_field, range)
  take_zeros(cursor, range:uint())
end

function read_shape.zeros(cursor, _, field)
  take_zeros(cursor, field.bytes)
end

function read_shape.record(cursor, tree, field)
  local from = cursor.at
  local item = tree:add(cursor.buffer:range(from, cursor.limit - from), field.title)
  read_record(cursor, item, field.record)
  item:set_len(cursor.at - from)
end

function read_shape.list(cursor, tree, field)
  for _ = 1, read_count(cursor, tree, field, 1) do
    if cursor.at == cursor.limit then stop(cursor, "the frame ends inside a list") end
    read_shape.record(cursor, tree, { title = field.record.title, record = field.record })
  end
end

function read_shape.optional(cursor, tree, field)
  if read_count(cursor, tree, field, 1) ~= 0 then
    read_shape[field.inner.shape](cursor, tree, field.inner)
  end
end

function read_shape.choice(cursor, tree, field)
  local range = take(cursor, 1)
  tree:add(field.proto_field, range)
  local record = field.variants[range:uint()]
  if record == nil then
    cursor.at = cursor.at - 1
    stop(cursor, "this number is not known")
  end
  cursor.summary[#cursor.summary + 1] = record.title
  read_record(cursor, tree, record)
end

function read_shape.ethernet(cursor)
  cursor.carried = { at = cursor.at, bytes = cursor.limit - cursor.at }
  cursor.at = cursor.limit
end

function read_record(cursor, tree, record)
  for _, field in ipairs(record) do
    if cursor.at == cursor.limit and field.shape == "record" then
      stop(cursor, "the frame ends here")
    end
    read_shape[field.shape](cursor, tree, field)
  end
end

-- The CRC-32 of IEEE 802.3, with whatever operators for bits this version of Lua has.
local xor = (bit32 and bit32.bxor) or (bit and bit.bxor)
  or load("return function(one, other) return one ~ other end")()
local crc_table = {}
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do
    local odd = crc % 2 == 1
    crc = math.floor(crc / 2)
    if odd then crc = xor(crc, 0xedb88320) % 0x100000000 end
  end
  crc_table[byte] = crc
end

local function crc_of(...)
  local crc = 0xffffffff
  for _, range in ipairs({ ... }) do
    local bytes = range:bytes()
    for nth = 0, bytes:len() - 1 do
      local low = xor(crc % 0x100, bytes:get_index(nth))
      crc = xor(math.floor(crc / 0x100), crc_table[low]) % 0x100000000
    end
  end
  return xor(crc, 0xffffffff) % 0x100000000
end

-- A stamp ends with its own CRC-32. Zeros are an area that no crossbar has stamped.
local function check_stamp(item, range)
  local covered, crc = range:range(0, range:len() - 4), range:range(range:len() - 4, 4):uint()
  if crc == crc_of(covered) then return end
  for nth = 0, range:len() - 1 do
    if range:range(nth, 1):uint() ~= 0 then
      item:add_proto_expert_info(bad_crc)
      return
    end
  end
end

-- Reads what stands behind the route, and checks it.
local function read_frame(cursor, tree)
  local whole = cursor.limit
  local header = cursor.at
  read_record(cursor, tree, frame.header)
  local range = cursor.buffer:range(header, cursor.at - header)
  local kind, version = range:range(0, 4):uint(), range:range(4, 1):uint()
  local flags, body_bytes = range:range(5, 1):uint(), range:range(6, 2):uint()
  if version ~= protocol_version then
    tree:add_proto_expert_info(
      other_version, "Version " .. version .. " of the protocol; this dissector knows " .. protocol_version)
    return
  end
  local function has(mask) return math.floor(flags / mask) % 2 == 1 end
  if has(frame.stamp_mask) then
    local item = tree:add(cursor.buffer:range(cursor.at, whole - cursor.at), "Stamp")
    local from = cursor.at
    read_record(cursor, item, frame.stamp)
    item:set_len(cursor.at - from)
    check_stamp(item, cursor.buffer:range(from, cursor.at - from))
  end
  local covered = cursor.at
  take(cursor, body_bytes)
  cursor.at, cursor.limit = covered, covered + body_bytes
  local body = frame.bodies[kind]
  read_record(cursor, tree, body)
  -- What a message is for says more than that it is a message.
  if #cursor.summary == 0 then cursor.summary[1] = body.title end
  if cursor.at ~= cursor.limit then stop(cursor, "the body is longer than what it carries") end
  cursor.limit = whole
  if has(frame.signature_mask) then
    local item = tree:add(cursor.buffer:range(cursor.at, whole - cursor.at), "Signature")
    local from = cursor.at
    read_record(cursor, item, frame.signature)
    item:set_len(cursor.at - from)
  end
  local crc_at = cursor.at
  read_record(cursor, tree, frame.ending)
  local crc = cursor.buffer:range(crc_at, 4):uint()
  if crc ~= crc_of(range, cursor.buffer:range(covered, crc_at - covered)) then
    tree:add_proto_expert_info(bad_crc)
  end
end

local ethernet = Dissector.get("eth_withoutfcs")

-- Whether these bytes can be a frame of ours: a route, then a kind that is known. The EtherType is one
-- of those for experiments, so that other protocols have it too.
local function is_ours(buffer, behind_route, why)
  if why ~= nil then return buffer:range(0, 1):uint() >= 0x80 end
  return behind_route + 4 <= buffer:len() and frame.bodies[buffer:range(behind_route, 4):uint()] ~= nil
end

function mapper.dissector(buffer, pinfo, root)
  if buffer:len() == 0 then return 0 end
  local behind_route, route, why = read_elements(buffer, 0, buffer:len())
  if not is_ours(buffer, behind_route, why) then return 0 end
  pinfo.cols.protocol = "MAPPER"
  local tree = root:add(mapper, buffer:range(0))
  local cursor = { buffer = buffer, at = behind_route, limit = buffer:len(), summary = {} }
  local read, fault = pcall(function()
    if route == nil then stop(cursor, why) end
    if behind_route > 0 then
      tree:add(route_field, buffer:range(0, behind_route), route)
    else
      tree:add(route_field, route)
    end
    read_frame(cursor, tree)
  end)
  pinfo.cols.info = table.concat(cursor.summary, " ")
  if read then
    tree:set_len(cursor.at)
  elseif type(fault) == "table" then
    tree:add_tvb_expert_info(malformed, fault.range, "Malformed: " .. fault.why)
    pinfo.cols.info:append(" [malformed: " .. fault.why .. "]")
  else
    error(fault, 0)
  end
  local carried = cursor.carried
  if read and carried ~= nil and carried.bytes > 0 then
    -- What is carried has the last word on the columns, but for the addresses of the frame itself.
    ethernet:call(buffer:range(carried.at, carried.bytes):tvb(), pinfo, root)
  end
  return buffer:len()
end

DissectorTable.get("ethertype"):add(ethertype, mapper)
