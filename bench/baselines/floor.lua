--[[
Stores a batch of spins without any decision: a balance, a request id and a stream entry for each spin.

KEYS[1]  hash    player -> balance
KEYS[2]  hash    requestId -> entry
KEYS[3]  stream  entries that are not in Postgres yet

ARGV     player, requestId and entry of each spin

Reply    number of stored spins
]]
for i = 1, #ARGV, 3 do
  redis.call('HSET', KEYS[1], ARGV[i], '1000250000')
  redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i + 2])
  redis.call('XADD', KEYS[3], '*', 'e', ARGV[i + 2])
end
return #ARGV / 3
