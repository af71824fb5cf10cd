/** Deliberate faults in dealing, in flushes to the ledger and in rebuilds. */
import { built, type Fault, lua, type Mutation } from './mutant.js';

export const DEALING_MUTATIONS: readonly Mutation[] = [
  {
    name: 'a replay spins again',
    faults: [lua('include/idempotency', "bound = call('HMGET', idemKey, unpack(requestKeys))", 'bound = {}')],
    found: ['requests'],
  },
  {
    name: 'the cursor skips what it did not book',
    faults: [
      built(
        'engine/ledger/portion.js',
        'for (const batch of batches) {',
        'for (const batch of batches.slice(-1)) {',
      ),
    ],
    // The ledger itself refuses the entries after a gap and halts the cell.
    found: ['cursors'],
  },
  {
    name: 'the cursor skips, and the ledger does not mind a gap',
    faults: [
      built(
        'engine/ledger/portion.js',
        'for (const batch of batches) {',
        'for (const batch of batches.slice(-1)) {',
      ),
      built(
        'engine/ledger/ledger.store.js',
        'WHERE u.from_index = coalesce(',
        'WHERE u.from_index >= coalesce(',
      ),
    ],
    found: ['indices', 'balances'],
  },
  {
    name: 'a payout is off by one micro-USD',
    faults: [
      lua(
        'include/dealSpin',
        'payout, before - stake + payout,',
        'payout, before - stake + payout + (payout > 0 and 1 or 0),',
      ),
    ],
    found: ['balances'],
  },
  {
    name: 'a payout is booked a micro-USD too high',
    faults: [lua('include/dealSpin', '= payout, before - stake', '= payout + 1, before - stake')],
    found: ['outcomes', 'balances'],
  },
  {
    name: 'a block is served twice',
    faults: [
      lua(
        'include/takeOutcome',
        'nextIndex[game] = index + 1\n',
        'nextIndex[game] = index == 99 and 0 or index + 1\n',
      ),
      built(
        'engine/ledger/ledger.store.js',
        'WHERE u.from_index = coalesce(',
        'WHERE u.from_index >= 0 * coalesce(',
      ),
      built('engine/ledger/transcoder.js', 'if (index !== progress.toIndex) {', 'if (index < 0) {'),
    ],
    found: ['indices'],
  },
  {
    name: 'another outcome is dealt than the sealed one',
    faults: [
      lua(
        'include/takeOutcome',
        'code = codeHigh and codeLow + codeHigh * 256',
        'code = codeHigh and codeLow + codeHigh * 256; if index % 50 == 7 then code = 0 end',
      ),
    ],
    found: ['outcomes'],
  },
  {
    name: 'a block is loaded otherwise than it was sealed',
    faults: [
      built(
        'engine/blocks/keeper.js',
        'block.outcomes.byteLength);',
        'block.outcomes.byteLength).reverse();',
      ),
    ],
    found: ['blocks'],
  },
  {
    name: 'a balance forgets a spin',
    faults: [
      lua(
        'include/writeEntries',
        'pack(PLAYER_OF_CORE_FORMAT, playerCores[player]',
        'pack(PLAYER_OF_CORE_FORMAT, storedPlayers[player] and sub(storedPlayers[player], 1, 18) or playerCores[player]',
      ),
    ],
    found: ['balances'],
  },
  {
    name: 'the totals of a day miss a payout',
    faults: [
      built(
        'engine/ledger/transcoder.js',
        'sum.credited += credit;',
        'if (sum.count !== 5) sum.credited += credit;',
      ),
    ],
    found: ['double-entry'],
  },
  {
    name: 'a requestId is bound to nothing',
    faults: [
      lua(
        'include/writeEntries',
        "call('HSET', idemKey, unpack(newlyBound))",
        "call('HSET', idemKey .. ':lost', unpack(newlyBound))",
      ),
    ],
    found: ['requests'],
  },
  {
    name: 'a ticket is not noted',
    faults: [
      built(
        'engine/ledger/ledger.store.js',
        '({ ticketsOf }) => ticketsOf(raffles)',
        '({ ticketsOf }) => ticketsOf(raffles).slice(1)',
      ),
    ],
    found: ['requests'],
  },
  {
    name: 'a rebuild forgets the requestIds',
    faults: [
      built(
        'engine/recovery/rebuild.js',
        'filler.request(FIRST_SEGMENT, key, Buffer.concat([bound, tailOf(row, entryId)]));',
        '',
      ),
    ],
    found: ['requests'],
    isWiped: true,
  },
  {
    name: 'a rebuild takes a balance from the wrong entry',
    faults: [built('engine/recovery/rebuild.js', 'known.entryId < entryId', 'known.entryId > entryId')],
    found: ['balances'],
    isWiped: true,
  },
  {
    name: 'a rebuild gives up outcomes without a word',
    faults: [
      built(
        'engine/recovery/recoveries.store.js',
        'const voided = voids.reduce(',
        'await tx`DELETE FROM voids`; const voided = voids.reduce(',
      ),
    ],
    found: ['indices'],
    isWiped: true,
  },
];

/** Faults that are visible in a response. The model must find each of them. */
export const FOUND_BY_THE_MODEL: readonly { name: string; fault: Fault }[] = [
  {
    name: 'a replay spins again',
    fault: lua('include/idempotency', "bound = call('HMGET', idemKey, unpack(requestKeys))", 'bound = {}'),
  },
  {
    name: 'a payout is off by one micro-USD',
    fault: lua(
      'include/dealSpin',
      'local payout = unpackStruct(PAYOUT_FORMAT, batch, payoutsAt[game] + code * PAYOUT_BYTES + 1)',
      'local payout = unpackStruct(PAYOUT_FORMAT, batch, payoutsAt[game] + code * PAYOUT_BYTES + 1); if payout > 0 then payout = payout + 1 end',
    ),
  },
  {
    name: 'a window lets one more through',
    fault: lua(
      'deal',
      'elseif spinsUsed[partner] >= spinLimit[partner] and',
      'elseif spinsUsed[partner] > spinLimit[partner] and',
    ),
  },
  {
    name: 'a conflict is answered as a replay',
    fault: lua('deal', 'if sub(boundTo, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then', 'if boundTo then'),
  },
  {
    name: 'a communal progressive fires one spin too early',
    fault: lua('include/communalRecords', 'local count = pot.progress + 1', 'local count = pot.progress + 2'),
  },
  {
    name: 'the remainder of a bonus is lost',
    fault: lua('include/communal', 'local share = i <= leftOver and each + 1 or each', 'local share = each'),
  },
  {
    name: 'a low balance is not refused',
    fault: lua(
      'include/refusal',
      'elseif enforces and debit > 0 and before < debit then',
      'elseif false then',
    ),
  },
  {
    name: 'a forced outcome is dealt twice',
    fault: lua('deal', "for field, key in pairs(usedForced) do call('HDEL', key, field) end", ''),
  },
  {
    name: 'a forced spin counts in the RTP of its game',
    fault: built('engine/ledger/transcoder.js', "entry.counterpart === 'sandbox'", 'false'),
  },
  {
    name: 'a forced outcome is served to production',
    fault: built('api/server/serve.js', 'route.sandboxOnly === true &&', 'false &&'),
  },
  {
    name: 'a forced spin advances the index',
    fault: lua(
      'include/dealSpin',
      'head = char(FORCED_SPIN_ENTRY) .. sub(spinHead[game], 2)',
      'head = char(FORCED_SPIN_ENTRY) .. sub(spinHead[game], 2); if chunk[game] then nextIndex[game], takenGames[game] = nextIndex[game] + 1, true end',
    ),
  },
  {
    name: 'a forced spin is not marked',
    fault: lua('include/layouts/forced', "local FORCED_TAIL = '\\1'", "local FORCED_TAIL = ''"),
  },
];
