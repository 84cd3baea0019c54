-- Dissector of rdma/soft datagrams, for Wireshark and tshark:
--
--     tshark -X lua_script:rdma/soft/testdata/soft.lua -r talk.pcap -V
--
-- The layout is in rdma/soft/wire.go. The DDP segment in the middle is passed to
-- Wireshark's own dissector. The CRC is computed here, independent of ours.

local dgram = Proto("muster_dgram", "Muster datagram")
local f = {
  version = ProtoField.uint8("muster_dgram.version", "Version", base.DEC, nil, 0xf0),
  kind = ProtoField.uint8("muster_dgram.kind", "Kind", base.DEC, { [1] = "UD segment", [2] = "RD segment", [3] = "RD ack", [4] = "UD piece of a Write-Record", [5] = "UD error message", [6] = "RD packet of a run" }, 0x0f),
  urgent = ProtoField.uint8("muster_dgram.urgent", "Ack requested", base.DEC, nil, 0x01),
  ack = ProtoField.uint8("muster_dgram.ack", "Ack present", base.DEC, nil, 0x02),
  path = ProtoField.uint8("muster_dgram.path", "Path", base.DEC, nil, 0x1c),
  to = ProtoField.uint16("muster_dgram.to", "Queue pair at the destination"),
  from = ProtoField.uint16("muster_dgram.from", "Queue pair at the source"),
  to_incarnation = ProtoField.bytes("muster_dgram.to_incarnation", "Incarnation of the destination"),
  from_incarnation = ProtoField.bytes("muster_dgram.from_incarnation", "Incarnation of the source"),
  serial = ProtoField.bytes("muster_dgram.serial", "Serial number"),
  name = ProtoField.uint32("muster_dgram.name", "Name of the source"),
  partial = ProtoField.uint8("muster_dgram.partial", "The CRC covers the front alone", base.DEC, nil, 0x40),
  delay_ack = ProtoField.uint8("muster_dgram.delay_ack", "The ack may be delayed", base.DEC, nil, 0x80),
  encrypted = ProtoField.uint8("muster_dgram.encrypted", "Encrypted", base.DEC, nil, 0x20),
  record_number = ProtoField.uint32("muster_dgram.record_number", "Number of the Write-Record"),
  record_total = ProtoField.uint32("muster_dgram.record_total", "Bytes of it"),
  record_cut = ProtoField.uint16("muster_dgram.record_cut", "Bytes in a datagram"),
  record_index = ProtoField.uint16("muster_dgram.record_index", "Index of the datagram"),
  record_id = ProtoField.bytes("muster_dgram.record_id", "Id of the work request"),
  number = ProtoField.uint32("muster_dgram.number", "Packet number"),
  sequence = ProtoField.uint32("muster_dgram.sequence", "Data sequence"),
  next = ProtoField.uint32("muster_dgram.next", "First segment missing"),
  ends = ProtoField.uint32("muster_dgram.end", "End of the packets received"),
  span = ProtoField.uint16("muster_dgram.span", "Packets reported"),
  held = ProtoField.uint16("muster_dgram.held", "Ack delay in microseconds"),
  ack_path = ProtoField.uint8("muster_dgram.ack_path", "Path of the packets"),
  missing = ProtoField.bytes("muster_dgram.missing", "Missing packets"),
  position = ProtoField.uint8("muster_dgram.position", "Position in the run"),
  packets = ProtoField.uint8("muster_dgram.packets", "Packets of the run"),
  token = ProtoField.uint32("muster_dgram.token", "Token", base.HEX),
  each = ProtoField.uint16("muster_dgram.each", "Bytes in a packet"),
  crc = ProtoField.uint32("muster_dgram.crc", "CRC32C", base.HEX),
  good = ProtoField.bool("muster_dgram.crc_good", "The CRC is right"),
  tag = ProtoField.bytes("muster_dgram.tag", "Authentication tag"),
}
dgram.fields = f

local head, tail, tag_len = 28, 20, 16
local ddp = Dissector.get("iwarp_ddp_rdmap")

-- CRC32C: the reflected polynomial of Castagnoli, initial and final value all ones.
local crc_of = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do
    c = bit32.band(c, 1) == 1 and bit32.bxor(bit32.rshift(c, 1), 0x82f63b78) or bit32.rshift(c, 1)
  end
  crc_of[i] = c
end
local function crc32c(bytes)
  local c = 0xffffffff
  for i = 0, bytes:len() - 1 do
    c = bit32.bxor(crc_of[bit32.band(bit32.bxor(c, bytes:get_index(i)), 0xff)], bit32.rshift(c, 8))
  end
  return bit32.bnot(c)
end

-- length_of returns the length of everything before the segment, or nil if this is not our datagram.
local function length_of(tvb)
  if tvb:len() < head + tail then return nil end
  local first, flags = tvb(0, 1):uint(), tvb(1, 1):uint()
  local kind = bit32.band(first, 0x0f)
  if bit32.rshift(first, 4) ~= 2 or kind < 1 or kind > 5 then return nil end
  local n = head
  if bit32.band(flags, 0x20) ~= 0 then return n, kind, flags end -- the rest is ciphertext
  if kind == 2 then n = n + 8 end
  if kind == 4 then n = n + 20 end
  if bit32.band(flags, 2) ~= 0 then
    if n + 16 + tail > tvb:len() then return nil end
    n = n + 16 + 8 * tvb(n + 13, 1):uint()
  end
  if n + tail > tvb:len() then return nil end
  return n, kind, flags
end

-- A packet of a run: its index (rdma/soft/run.go). The CRC is masked with the job's key.
local index = 22
local function is_run(tvb) return tvb:len() > index and tvb(0, 1):uint() == 0x26 and tvb(2, 1):uint() < tvb(3, 1):uint() end
local function dissect_run(tvb, pinfo, tree)
  local t = tree:add(dgram, tvb())
  t:add(f.version, tvb(0, 1)); t:add(f.kind, tvb(0, 1)); t:add(f.urgent, tvb(1, 1)); t:add(f.path, tvb(1, 1)); t:add(f.delay_ack, tvb(1, 1))
  t:add(f.position, tvb(2, 1)); t:add(f.packets, tvb(3, 1)); t:add(f.token, tvb(4, 4))
  t:add(f.number, tvb(8, 4)); t:add(f.sequence, tvb(12, 4)); t:add(f.each, tvb(16, 2)); t:add_le(f.crc, tvb(18, 4))
  pinfo.cols.protocol = "MUSTER"
  return tvb:len()
end

function dgram.dissector(tvb, pinfo, tree)
  if is_run(tvb) then return dissect_run(tvb, pinfo, tree) end
  local n, kind, flags = length_of(tvb)
  if not n then return 0 end
  local t = tree:add(dgram, tvb())
  t:add(f.version, tvb(0, 1)); t:add(f.kind, tvb(0, 1))
  t:add(f.urgent, tvb(1, 1)); t:add(f.ack, tvb(1, 1)); t:add(f.path, tvb(1, 1)); t:add(f.encrypted, tvb(1, 1))
  t:add(f.to, tvb(2, 2)); t:add(f.from, tvb(4, 2))
  t:add(f.to_incarnation, tvb(6, 6)); t:add(f.from_incarnation, tvb(12, 6)); t:add(f.serial, tvb(18, 6)); t:add(f.name, tvb(24, 4))
  local at = head
  local encrypted = bit32.band(flags, 0x20) ~= 0
  t:add(f.partial, tvb(1, 1)); t:add(f.delay_ack, tvb(1, 1))
  if kind == 4 and not encrypted then
    t:add(f.record_number, tvb(at, 4)); t:add(f.record_total, tvb(at + 4, 4)); t:add(f.record_cut, tvb(at + 8, 2))
    t:add(f.record_index, tvb(at + 10, 2)); t:add(f.record_id, tvb(at + 12, 8))
  end
  if kind == 2 and not encrypted then
    t:add(f.number, tvb(at, 4)); t:add(f.sequence, tvb(at + 4, 4))
    at = at + 8
  end
  if bit32.band(flags, 2) ~= 0 and not encrypted then
    t:add(f.next, tvb(at, 4)); t:add(f.ends, tvb(at + 4, 4)); t:add(f.span, tvb(at + 8, 2)); t:add(f.held, tvb(at + 10, 2))
    t:add(f.ack_path, tvb(at + 12, 1))
    at = at + 16
    if at < n then t:add(f.missing, tvb(at, n - at)) end
  end
  local stop = tvb:len() - tail
  t:add_le(f.crc, tvb(stop, 4))
  local summed = stop
  if bit32.band(flags, 0x40) ~= 0 then summed = math.min(stop, 108) end
  t:add(f.good, crc32c(tvb(0, summed):bytes()) == tvb(stop, 4):le_uint())
  t:add(f.tag, tvb(stop + 4, tag_len))
  pinfo.cols.protocol = "MUSTER"
  if kind ~= 3 and not encrypted then ddp:call(tvb(n, stop - n):tvb(), pinfo, tree) end
  return tvb:len()
end

dgram:register_heuristic("udp", function(tvb, pinfo, tree)
  if not length_of(tvb) and not is_run(tvb) then return false end
  dgram.dissector(tvb, pinfo, tree)
  return true
end)
