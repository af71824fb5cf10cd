-- The error reply of a cell that is at another epoch than the caller believes.
local function epochError(epoch)
  return redis.error_reply('EPOCH ' .. (epoch or 'none'))
end
