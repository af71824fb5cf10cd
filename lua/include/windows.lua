-- The partners of the call: their rate limit windows, and their net result with players. Needs `partnerIds`.
-- include: cell
local spinsUsed, apiUsed, netPaid = {}, {}, {}
local windowMinute = floor(nowMs / 60000)
local partnerRecords = call('HMGET', KEYS[2], unpack(partnerIds))
for i = 1, #partnerIds do
  local spinMinute, apiMinute = 0, 0
  spinsUsed[i], apiUsed[i], netPaid[i] = 0, 0, 0
  if partnerRecords[i] then
    spinMinute, spinsUsed[i], apiMinute, apiUsed[i], netPaid[i] =
      unpackStruct(PARTNER_FORMAT, partnerRecords[i])
  end
  if spinMinute ~= windowMinute then spinsUsed[i] = 0 end
  if apiMinute ~= windowMinute then apiUsed[i] = 0 end
end
