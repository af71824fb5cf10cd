--[[
Deals one spin in the conventional way: one call per spin, one key for each kind of data.

KEYS[1]  string  number of requests in the current window
KEYS[2]  string  binding of the requestId: "<fingerprint> <spin id> <outcome> <balance>"
KEYS[3]  hash    player -> balance, micro-USD
KEYS[4]  list    outcomes drawn in advance, "<outcome> <payout in micro-USD>"
KEYS[5]  stream  spins that are not in Postgres yet

ARGV     limit of the window, length of the window (s), fingerprint of the request, player,
         wager (micro-USD), opening balance (micro-USD), game, requestId (empty: none),
         lifetime of the binding (s)

Reply    {"dealt" or "replay", requests used, spin id, outcome, balance},
         or {"limited", "conflict" or "exhausted", requests used}
]]
local limit, window, fingerprint = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local player, wager = ARGV[4], tonumber(ARGV[5])
local opening, game, requestId, bindSeconds = ARGV[6], ARGV[7], ARGV[8], ARGV[9]

local used = redis.call('INCR', KEYS[1])
if used == 1 then
  redis.call('EXPIRE', KEYS[1], window)
end
if used > limit then
  return { 'limited', used }
end

if requestId ~= '' then
  local bound = redis.call('GET', KEYS[2])
  if bound then
    local boundTo, spinId, outcome, balance = string.match(bound, '^(%S+) (%S+) (%d+) (-?%d+)$')
    if boundTo ~= fingerprint then
      return { 'conflict', used }
    end
    return { 'replay', used, spinId, outcome, balance }
  end
end

local popped = redis.call('LPOP', KEYS[4])
if not popped then
  return { 'exhausted', used }
end
local outcome, payout = string.match(popped, '^(%d+) (%d+)$')
redis.call('HSETNX', KEYS[3], player, opening)
local balance = redis.call('HINCRBY', KEYS[3], player, string.format('%.0f', tonumber(payout) - wager))
local balanceText = string.format('%.0f', balance)
local spinId = redis.call('XADD', KEYS[5], '*',
  'game', game, 'player', player, 'outcome', outcome, 'wager', ARGV[5],
  'payout', payout, 'balance', balanceText, 'request', requestId)
if requestId ~= '' then
  local bound = fingerprint .. ' ' .. spinId .. ' ' .. outcome .. ' ' .. balanceText
  redis.call('SET', KEYS[2], bound, 'EX', bindSeconds)
end
return { 'dealt', used, spinId, outcome, balanceText }
