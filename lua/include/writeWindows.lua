-- Writes the partners of the call.
-- include: windows
local partnerValues = {}
for i = 1, #partnerIds do
  partnerValues[2 * i - 1] = partnerIds[i]
  partnerValues[2 * i] = pack(PARTNER_FORMAT, windowMinute, spinsUsed[i], windowMinute, apiUsed[i], netPaid[i])
end
call('HSET', KEYS[2], unpack(partnerValues))
