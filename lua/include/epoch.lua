-- Returns the error reply for a cell whose epoch differs from the one that the caller expects.
local function epochError(epoch)
  return redis.error_reply('EPOCH ' .. (epoch or 'none'))
end
