-- What the requestIds of the call are bound to, in two periods: the current one's hash is written, that and the one before
-- are read. Needs `requestKeys`; gives `bound` by their places.
--
-- computed {cN}:idem:<period>  hash, 16-byte hash of partner and requestId -> BOUND or REFUSED. A spin and an adjustment
--                              never have the same hash.
-- include: entryIds
-- By the newest entry where the clock went back: what was bound in a later period must be found.
local period = floor(floor(idMs / 1000) / tonumber(ARGV[3]))
local idemKey = cellPrefix .. 'idem:' .. period
local bound = {}
if #requestKeys > 0 then
  bound = call('HMGET', idemKey, unpack(requestKeys))
  local earlier = call('HMGET', cellPrefix .. 'idem:' .. (period - 1), unpack(requestKeys))
  for i = 1, #requestKeys do
    bound[i] = bound[i] or earlier[i]
  end
end
-- Keys and values by turns.
local newlyBound, newlyBoundCount = {}, 0
