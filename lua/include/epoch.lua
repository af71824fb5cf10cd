-- The error reply where the cell is at another epoch than ARGV[1] says; nil where it is at that one.
local function epochError(epoch)
  if epoch ~= ARGV[1] then
    return redis.error_reply('EPOCH ' .. (epoch or 'none'))
  end
end
