-- Writes the partners of the call.
-- include: windows
local partnerValues = {}
for i = 1, #partnerIds do
  -- As NET_MAX_MICROS of src/redis/records.ts: what is packed must fit a signed 64-bit integer.
  local net = netPaid[i]
  if net > 9e18 then net = 9e18 elseif net < -9e18 then net = -9e18 end
  partnerValues[2 * i - 1] = partnerIds[i]
  partnerValues[2 * i] = pack(PARTNER_FORMAT, windowMinute, spinsUsed[i], windowMinute, apiUsed[i], net)
end
call('HSET', KEYS[2], unpack(partnerValues))
