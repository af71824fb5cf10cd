-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- BATCH: partners u16, games u16, players u16, requestIds u16, spins u16, tableBytes u32, listsAt u32, spinsAt u32
local BATCH_FORMAT = '<I2I2I2I2I2I4I4I4'
-- BATCH_PARTNER: spinLimit u32, apiLimit u32, openingMicros i64, fundingMicros i64, flags u8, newestMove u32, digitsOfId u8 and as many bytes
local BATCH_PARTNER_FORMAT = '<I4I4i8i8BI4Bc0'
-- BATCH_GAME: gameId u32, wagerMicros i64, maxPayoutMicros i64, payoutsAt u32, payoutCount u16, poolSize u32, spins u16, digitsOfId u8 and as many bytes
local BATCH_GAME_FORMAT = '<I4i8i8I4I2I4I2Bc0'
-- BATCH_SPIN: kind u8, deny u8, partner u16, game u16, player u16, requestId u16, fingerprint 10 bytes, playerLength u16, requestLength u16
local BATCH_SPIN_FORMAT = '<BBI2I2I2I2c10I2I2'
local BATCH_PLAYER_MEMBERS = 'I2c0'
local BATCH_REQUEST_MEMBERS = 'c16'
-- REPLY: timeMs u48
local REPLY_FORMAT = '<I6'
-- REPLY_PARTNER: spinsUsed u32, apiUsed u32
local REPLY_PARTNER_FORMAT = '<I4I4'
-- REPLY_TAIL: place u16, length u16
local REPLY_TAIL_FORMAT = '<I2I2'
local COUNT_SPIN_KIND = 2
local COUNT_API_KIND = 3
local DEAL_COUNTED_KIND = 4
local ENFORCES_BALANCE = 1
local IS_SANDBOX = 2
