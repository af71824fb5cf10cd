-- The partners of the call: the windows that their requests count against, and what they paid to players.
-- include: cell
local partnerIds, spinsUsed, apiUsed, netPaid = {}, {}, {}, {}
local windowMinute

local function readPartners(ids, nowMs)
  partnerIds, windowMinute = ids, floor(nowMs / 60000)
  local records = call('HMGET', KEYS[2], unpack(ids))
  for i = 1, #ids do
    local spinMinute, apiMinute = 0, 0
    spinsUsed[i], apiUsed[i], netPaid[i] = 0, 0, 0
    if records[i] then
      spinMinute, spinsUsed[i], apiMinute, apiUsed[i], netPaid[i] = unpackStruct(PARTNER_FORMAT, records[i])
    end
    if spinMinute ~= windowMinute then spinsUsed[i] = 0 end
    if apiMinute ~= windowMinute then apiUsed[i] = 0 end
  end
end

local function writePartners()
  local values = {}
  for i = 1, #partnerIds do
    values[2 * i - 1] = partnerIds[i]
    values[2 * i] = pack(PARTNER_FORMAT, windowMinute, spinsUsed[i], windowMinute, apiUsed[i], netPaid[i])
  end
  call('HSET', KEYS[2], unpack(values))
end
