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
