-- Returns the error reply for a cell that does not have the caller's epoch.
local function epochError(epoch)
  return redis.error_reply('EPOCH ' .. (epoch or 'none'))
end
