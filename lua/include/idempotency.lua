-- Finds what the requestIds of the call are bound to, in the segments of request ids that Redis still holds
-- (docs/internals.md). The newest segment is written, and all segments are read. Needs `requestKeys` and
-- gives `bound` by their positions.
--
-- computed {cN}:idem:<segment>  hash, 16-byte hash of partner and requestId -> BOUND. The hashes of spins and
--                               adjustments are always different.
--
-- Errors   BEHIND: request ids have been released that the caller's filters lack. Nothing was done.
-- include: entryIds
local segments = cell[6]
-- The cell has no segments, because no owner of this software version has taken it over yet.
if not segments then
  return epochError()
end
local releasedLow, releasedHigh, firstSegment = unpackStruct(SEGMENTS_FORMAT, segments)
local newestSegment = firstSegment + (#segments - SEGMENTS_BYTES) / 8
local idemKey = cellPrefix .. 'idem:' .. newestSegment
local bound = {}
if #requestKeys > 0 then
  local reachLow, reachHigh = 0, 0
  if ARGV[3] ~= '' then reachLow, reachHigh = unpackStruct(ENTRY_ID_FORMAT, ARGV[3]) end
  if reachHigh < releasedHigh or reachHigh == releasedHigh and reachLow < releasedLow then
    return redis.error_reply('BEHIND the filters of request ids')
  end
  bound = call('HMGET', idemKey, unpack(requestKeys))
  for segment = newestSegment - 1, firstSegment, -1 do
    local earlier = call('HMGET', cellPrefix .. 'idem:' .. segment, unpack(requestKeys))
    for i = 1, #requestKeys do
      bound[i] = bound[i] or earlier[i]
    end
  end
end
-- Request ids that this call binds: each key is followed by its value.
local newlyBound, newlyBoundCount = {}, 0
