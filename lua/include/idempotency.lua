-- What the requestIds of the call are bound to, in two periods: the current one's hash is written, that and the one before
-- are read.
--
-- computed {cN}:idem:<period>  hash, 16-byte hash of partner and requestId -> BOUND or REFUSED. A spin and an adjustment
--                              never have the same hash.
-- include: entryIds
local idemKey
local bound, boundKeys = {}, {}
local newlyBound, newlyBoundCount = {}, 0

-- After `beginEntryIds`: the period is that of the newest entry where the clock went back, because what was bound in a
-- later period must be found.
local function readBound(keys)
  local period = floor(floor(idMs / 1000) / tonumber(ARGV[3]))
  idemKey = cellPrefix .. 'idem:' .. period
  if #keys == 0 then
    return
  end
  boundKeys = keys
  bound = call('HMGET', idemKey, unpack(keys))
  local earlier = call('HMGET', cellPrefix .. 'idem:' .. (period - 1), unpack(keys))
  for i = 1, #keys do
    bound[i] = bound[i] or earlier[i]
  end
end

-- The CORE and the tail (empty: none) of BOUND; nil where it is bound to another request.
local function repeatBound(value, fingerprint)
  if sub(value, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then
    return sub(value, 1, CORE_BYTES), sub(value, BOUND_BYTES + 1)
  end
end

local function bind(request, value)
  bound[request] = value
  newlyBound[newlyBoundCount + 1], newlyBound[newlyBoundCount + 2] = boundKeys[request], value
  newlyBoundCount = newlyBoundCount + 2
end

local function writeBound()
  if newlyBoundCount > 0 then
    call('HSET', idemKey, unpack(newlyBound))
  end
end
