--[[
Closes the newest segment of a cell's request ids, or releases the oldest one, on behalf of the cell's owner.
The caller must have verified that released ids are in the runs of Postgres (docs/internals.md).

KEYS[1]  {cN}:cell  hash   fence: fence of the owner that has claimed the cell; segments: SEGMENTS; last: LAST
KEYS[2]  {cN}:idem:<oldest segment>, to be released; if absent, the newest segment is closed

ARGV[1]  fence of the caller
ARGV[2]  cell number
ARGV[3]  SEGMENTS as read by the caller

Reply    the current SEGMENTS; unchanged if another process has changed them since the caller read them
Errors   FENCED <fence>: the cell is claimed by another fence or by none. Nothing was done.
]]
-- include: records
local fence = ARGV[1]
-- include: ownerFence
local segments, last = unpack(call('HMGET', KEYS[1], 'segments', 'last'))
-- The cell has no segments: Redis has lost the cell, or the cell is being rebuilt.
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
  -- The newest segment ends at the cell's newest entry. If there is no entry after the end of the segment
  -- before it, both segments end at the same entry.
  local at = #segments > SEGMENTS_BYTES and #segments - ENTRY_ID_BYTES + 1 or 1
  local low, high = unpackStruct(ENTRY_ID_FORMAT, segments, at)
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
