-- Writes the records of the call's partners, with their rate limit windows.
-- include: windows
local partnerValues = {}
for i = 1, #partnerIds do
  -- Keep the net result in the range of a signed 64-bit integer, because it is packed as one.
  local net = netPaid[i]
  if net > NET_MAX then net = NET_MAX elseif net < -NET_MAX then net = -NET_MAX end
  partnerValues[2 * i - 1] = partnerIds[i]
  partnerValues[2 * i] = pack(PARTNER_FORMAT, windowMinute, spinsUsed[i], windowMinute, apiUsed[i], net)
end
call('HSET', KEYS[2], unpack(partnerValues))
