--[[
Closes the newest segment of a cell's request ids, or releases the oldest, on behalf of the cell's owner. Whoever calls knows that
what is released is in the ledger's runs (docs/internals.md).

KEYS[1]  {cN}:cell  hash   fence: that of the owner that has claimed the cell; segments: SEGMENTS; last: LAST
KEYS[2]  {cN}:idem:<oldest segment>, to be released; absent: the newest is closed

ARGV[1]  fence of the caller
ARGV[2]  cell number
ARGV[3]  SEGMENTS as the caller has read it

Reply    SEGMENTS as it is now; as it was where somebody else has changed it.
Errors   FENCED <fence>: the cell is claimed by another fence, or none. Nothing was done.
]]
-- include: records
local fence = ARGV[1]
-- include: ownerFence
local segments, last = unpack(call('HMGET', KEYS[1], 'segments', 'last'))
-- Redis lost the cell, or it is being rebuilt.
if not segments then
  return redis.error_reply('FENCED ' .. claimedBy)
end
if segments ~= ARGV[3] then
  return segments
end
local changed
if KEYS[2] then
  local _, _, segment = unpackStruct(SEGMENTS_FORMAT, segments)
  local releasedLow, releasedHigh = unpackStruct(ENTRY_ID_FORMAT, segments, SEGMENTS_BYTES + 1)
  changed = pack(SEGMENTS_FORMAT, releasedLow, releasedHigh, segment + 1)
    .. sub(segments, SEGMENTS_BYTES + ENTRY_ID_BYTES + 1)
else
  -- Where no entry has come since the segment before it ended, it ends there, too.
  local low, high = unpackStruct(ENTRY_ID_FORMAT, segments, #segments > SEGMENTS_BYTES and #segments - ENTRY_ID_BYTES + 1 or 1)
  if last then
    local ms, sequence = unpackStruct(MOMENT_FORMAT, last)
    local lastLow, lastHigh = (ms % 1024) * 4194304 + tonumber(ARGV[2]) * 16384 + sequence, floor(ms / 1024)
    if lastHigh > high or lastHigh == high and lastLow > low then
      low, high = lastLow, lastHigh
    end
  end
  changed = segments .. pack(ENTRY_ID_FORMAT, low, high)
end
call('HSET', KEYS[1], 'segments', changed)
if KEYS[2] then
  call('UNLINK', KEYS[2])
end
return changed
